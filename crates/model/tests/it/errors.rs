use std::{fmt::Debug, str::FromStr};

use insta::assert_snapshot;
use netstead_model::{Address, Cidr, Ident, Key, Kind, Name, ParseError, Range, is_host_label};

fn messages<T: Debug>(bad: &[&str], parse: impl Fn(&str) -> Result<T, ParseError>) -> String {
    bad.iter().map(|text| parse(text).unwrap_err().to_string()).collect::<Vec<_>>().join("\n")
}

fn of<T: FromStr<Err = ParseError> + Debug>(bad: &[&str]) -> String {
    messages(bad, str::parse::<T>)
}

#[test]
fn bad_addresses_are_explained() {
    let bad = [
        "10.0.3.999",
        "10.0.3",
        "10.0.3.1.2",
        "10..3.1",
        "10.0.3.07",
        "10.0.3.x",
        "10.0.3.1/24",
        "hello",
        "",
    ];
    assert_snapshot!(of::<Address>(&bad), @"
    `10.0.3.999` is not an IPv4 address: the part `999` at character 8 is over 255
    `10.0.3` is not an IPv4 address: it has 3 parts, an IPv4 address has 4
    `10.0.3.1.2` is not an IPv4 address: it has 5 parts, an IPv4 address has 4
    `10..3.1` is not an IPv4 address: the part at character 4 is empty
    `10.0.3.07` is not an IPv4 address: the part `07` at character 8 begins with a zero, which some programs read as octal
    `10.0.3.x` is not an IPv4 address: `x` at character 8 is not a digit
    `10.0.3.1/24` is not an IPv4 address: the length `/24` at character 9 makes it a network, not an address
    `hello` is not an address: it has neither the dots of an IPv4 address nor the colons of an IPv6 or MAC address
    `` is not an address: it is empty
    ");
    let bad = [
        "fe80::1%eth0",
        "2001:db8::1::2",
        "2001:db8:::1",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8::",
        "12345::",
        "2001:db8::g",
        ":1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:",
        "[::1]",
        "::ffff:10.0.3.999",
        "::1.2.3.4:5",
    ];
    assert_snapshot!(of::<Address>(&bad), @"
    `fe80::1%eth0` is not an IPv6 address: the zone `%eth0` at character 8 means something on one machine only; leave it out
    `2001:db8::1::2` is not an IPv6 address: a second `::` at character 12 leaves open how many zeros stand where
    `2001:db8:::1` is not an IPv6 address: `:::` at character 9 has a colon too many
    `1:2:3:4:5:6:7` is not an IPv6 address: it has 7 groups, an IPv6 address has 8
    `1:2:3:4:5:6:7:8:9` is not an IPv6 address: it has 9 groups, an IPv6 address has 8
    `1:2:3:4:5:6:7:8::` is not an IPv6 address: it has 8 groups and `::`, which means at least one more; an IPv6 address has 8
    `12345::` is not an IPv6 address: the group `12345` at character 1 has more than 4 digits
    `2001:db8::g` is not an IPv6 address: `g` at character 11 is not a hexadecimal digit
    `:1:2:3:4:5:6:7` is not an IPv6 address: the `:` at character 1 has nothing beside it
    `1:2:3:4:5:6:7:` is not an IPv6 address: the `:` at character 14 has nothing beside it
    `[::1]` is not an IPv6 address: the bracket `[` at character 1 belongs to a URL; leave it out
    `::ffff:10.0.3.999` is not an IPv6 address: the part `999` at character 15 is over 255
    `::1.2.3.4:5` is not an IPv6 address: the IPv4 part `1.2.3.4` at character 3 is not at the end
    ");
}

#[test]
fn bad_macs_are_explained() {
    let bad = [
        "52:54:00:aa:bb",
        "52:54:00:aa:bb:cc:dd",
        "52-54-00-aa-bb",
        "52:54:00-aa-bb-cc",
        "52:54:00:aa:bb:c",
        "52:54:00:aa:bb:zz",
        "52:54:00::aa:bb",
        "5254.00aa",
        "525400aabbc",
        "",
    ];
    assert_snapshot!(messages(&bad, |text| Address::parse(Kind::Mac, text)), @"
    `52:54:00:aa:bb` is not a MAC address: it has 5 bytes, a MAC address has 6
    `52:54:00:aa:bb:cc:dd` is not a MAC address: it has 7 bytes, a MAC address has 6
    `52-54-00-aa-bb` is not a MAC address: it has 5 bytes, a MAC address has 6
    `52:54:00-aa-bb-cc` is not a MAC address: `-` at character 9 does not go with the `:` before
    `52:54:00:aa:bb:c` is not a MAC address: the byte `c` at character 16 has 1 digit, not 2
    `52:54:00:aa:bb:zz` is not a MAC address: `z` at character 16 is not a hexadecimal digit
    `52:54:00::aa:bb` is not a MAC address: the byte at character 10 is empty
    `5254.00aa` is not a MAC address: it has 2 groups, a MAC address has 3
    `525400aabbc` is not a MAC address: it has 11 digits, not 12
    `` is not a MAC address: it is empty
    ");
    assert_snapshot!(of::<Address>(&["52:54:00:aa:bb", "52-54-00-aa-bb"]), @"
    `52:54:00:aa:bb` is not a MAC address: it has 5 bytes, a MAC address has 6
    `52-54-00-aa-bb` is not a MAC address: it has 5 bytes, a MAC address has 6
    ");
}

#[test]
fn bad_networks_are_explained() {
    let bad = [
        "10.0.3.5/24",
        "2001:db8::/129",
        "10.0.3.0/33",
        "52:54:00:00:00:00/49",
        "10.0.3.0",
        "10.0.3.0/",
        "10.0.3.0/+8",
        "10.0.3.0/024",
        "10.0.3.0/255.255.255.0",
        "10.0.3.0/99999999999",
        "10.0.300.0/24",
        "/24",
        "",
    ];
    assert_snapshot!(of::<Cidr>(&bad), @"
    `10.0.3.5/24` is not a network: `10.0.3.5` is an address inside of `10.0.3.0/24`; write that, or `10.0.3.5/32`
    `2001:db8::/129` is not a network: the length `129` at character 12 is over 128, all bits of an IPv6 address
    `10.0.3.0/33` is not a network: the length `33` at character 10 is over 32, all bits of an IPv4 address
    `52:54:00:00:00:00/49` is not a network: the length `49` at character 19 is over 48, all bits of a MAC address
    `10.0.3.0` is not a network: the length is missing; the address alone would be `10.0.3.0/32`
    `10.0.3.0/` is not a network: the length at character 10 is missing
    `10.0.3.0/+8` is not a network: the length `+8` at character 10 is not a plain number from 0 to 32
    `10.0.3.0/024` is not a network: the length `024` at character 10 is not a plain number from 0 to 32
    `10.0.3.0/255.255.255.0` is not a network: the length `255.255.255.0` at character 10 is not a plain number from 0 to 32
    `10.0.3.0/99999999999` is not a network: the length `99999999999` at character 10 is over 32, all bits of an IPv4 address
    `10.0.300.0/24` is not a network: the part `300` at character 6 is over 255
    `/24` is not a network: the address at character 1 is missing
    `` is not a network: it is empty
    ");
    assert_snapshot!(Cidr::new("::1".parse().unwrap(), 64).unwrap_err(), @"`::1/64` is not a network: `::1` is an address inside of `::/64`; write that, or `::1/128`");
    assert_snapshot!(Cidr::containing("10.0.3.1".parse().unwrap(), 33).unwrap_err(), @"`10.0.3.1/33` is not a network: the length 33 is over 32, all bits of an IPv4 address");
}

#[test]
fn bad_ranges_are_explained() {
    let bad = [
        "10.0.3.200-10.0.3.50",
        "10.0.3.50-fd00::1",
        "10.0.3.1-52:54:00:aa:bb:cc",
        "10.0.3.50-200",
        "10.0.3.50-.200",
        "10.0.3.50-4.200",
        "fd00::1-ff",
        "52:54:00:00:00:01-ff",
        "10.0.3.50-",
        "-10.0.3.50",
        "10.0.3.50-10.0.3.999",
        "10.0.3.0/24-10.0.4.5",
        "10.0.3.5/24",
        "10.0.3.1-10.0.3.2-10.0.3.3",
        "hello",
        "",
    ];
    assert_snapshot!(of::<Range>(&bad), @"
    `10.0.3.200-10.0.3.50` is not a range: it begins at `10.0.3.200`, after its end `10.0.3.50`; write `10.0.3.50-10.0.3.200`
    `10.0.3.50-fd00::1` is not a range: `10.0.3.50` is an IPv4 address, but `fd00::1` an IPv6 address
    `10.0.3.1-52:54:00:aa:bb:cc` is not a range: `10.0.3.1` is an IPv4 address, but `52:54:00:aa:bb:cc` a MAC address
    `10.0.3.50-200` is not a range: the end `200` at character 11 is not written in full; write `10.0.3.50-10.0.3.200`
    `10.0.3.50-.200` is not a range: the end `.200` at character 11 is not written in full; write `10.0.3.50-10.0.3.200`
    `10.0.3.50-4.200` is not a range: the end `4.200` at character 11 is not written in full; write `10.0.3.50-10.0.4.200`
    `fd00::1-ff` is not a range: the end `ff` at character 9 is not written in full; write `fd00::1-fd00::ff`
    `52:54:00:00:00:01-ff` is not a range: the end `ff` at character 19 is not written in full; write `52:54:00:00:00:01-52:54:00:00:00:ff`
    `10.0.3.50-` is not a range: the address at character 11 is missing
    `-10.0.3.50` is not a range: the address at character 1 is missing
    `10.0.3.50-10.0.3.999` is not a range: the part `999` at character 18 is over 255
    `10.0.3.0/24-10.0.4.5` is not a range: the length `/24` at character 9 makes it a network, not an address
    `10.0.3.5/24` is not a range: `10.0.3.5` is an address inside of `10.0.3.0/24`; write that, or `10.0.3.5/32`
    `10.0.3.1-10.0.3.2-10.0.3.3` is not a range: a second `-` at character 18 leaves open where the first address ends
    `hello` is not a range: it has neither the dots of an IPv4 address nor the colons of an IPv6 or MAC address
    `` is not a range: it is empty
    ");
    let [one, other] = ["10.0.3.9", "10.0.3.5"].map(|text| text.parse().unwrap());
    assert_snapshot!(Range::new(one, other).unwrap_err(), @"`10.0.3.9-10.0.3.5` is not a range: it begins at `10.0.3.9`, after its end `10.0.3.5`; write `10.0.3.5-10.0.3.9`");
}

#[test]
fn bad_names_are_explained() {
    let label = "a".repeat(64);
    let long = ["abcdefghi."; 30].concat() + "b";
    let unicode = "ü".repeat(60);
    let bad = [
        "",
        ".",
        "a..b",
        ".a",
        "-a",
        "a-.b",
        "*a.b",
        "a.*.b",
        "a b",
        "a/b",
        "ä b.de",
        "xn--a.de",
        "xn--ü",
        "\u{ad}.de",
        "a\u{202e}b",
        "℀.de",
        "10.0.3.5",
        "10.0.3.999",
        "１０.0.3.5",
        "::1",
        &label,
        &long,
        &unicode,
    ];
    assert_snapshot!(of::<Name>(&bad), @r"
    `` is not a DNS name: it is empty
    `.` is not a DNS name: it has no labels
    `a..b` is not a DNS name: the label at character 3 is empty
    `.a` is not a DNS name: the label at character 1 is empty
    `-a` is not a DNS name: it begins with a hyphen
    `a-.b` is not a DNS name: the label `a-` at character 1 ends with a hyphen
    `*a.b` is not a DNS name: the wildcard `*` at character 1 is not a label of its own
    `a.*.b` is not a DNS name: the wildcard `*` at character 3 is not the first label
    `a b` is not a DNS name: ` ` at character 2 is not a letter, a digit or a hyphen
    `a/b` is not a DNS name: `/` at character 2 is not a letter, a digit or a hyphen
    `ä b.de` is not a DNS name: the label `ä b` at character 1 would be `xn-- b-uia`, which is not allowed
    `xn--a.de` is not a DNS name: the label `xn--a` at character 1 is not the ASCII form of any text
    `xn--ü` is not a DNS name: it has a character that IDNA does not allow in that place
    `\u{ad}.de` is not a DNS name: the label `\u{ad}` at character 1 has only characters that IDNA ignores
    `a\u{202e}b` is not a DNS name: it has a character that IDNA does not allow in that place
    `℀.de` is not a DNS name: the label `℀` at character 1 would be `a/c`, which is not allowed
    `10.0.3.5` is not a DNS name: it is an IP address; write a name such as `web.example.net`
    `10.0.3.999` is not a DNS name: it looks like an IPv4 address; write a name such as `web.example.net`
    `１０.0.3.5` is not a DNS name: it looks like an IPv4 address; write a name such as `web.example.net`
    `::1` is not a DNS name: it is an IP address; write a name such as `web.example.net`
    `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` is not a DNS name: it has 64 characters, the most for a label is 63
    `abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi.abcdefghi…` is not a DNS name: it has 301 characters, the most is 253
    `üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü` is not a DNS name: it has 66 characters in ASCII, the most for a label is 63
    ");
    assert_snapshot!(messages(&["_sip.lan", "*.lan", "a_b", "_ü.lan"], Name::host), @"
    `_sip.lan` is not a host name: the underscore `_` at character 1 is not allowed in host names
    `*.lan` is not a host name: the wildcard `*` at character 1 cannot be part of a host name
    `a_b` is not a host name: the underscore `_` at character 2 is not allowed in host names
    `_ü.lan` is not a host name: the label `_ü` at character 1 would be `xn--_-eha`, which is not allowed
    ");
    assert_snapshot!(messages(&["", "a.b", "web_1", "ü", "a-", &label], is_host_label), @"
    `` is not a host label: it is empty
    `a.b` is not a host label: `.` at character 2 is not a letter, a digit or a hyphen
    `web_1` is not a host label: the underscore `_` at character 4 is not allowed in host names
    `ü` is not a host label: `ü` at character 1 is not a letter, a digit or a hyphen
    `a-` is not a host label: it ends with a hyphen
    `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` is not a host label: it has 64 characters, the most for a label is 63
    ");
}

#[test]
fn bad_identifiers_and_keys_are_explained() {
    let long = "a".repeat(64);
    assert_snapshot!(of::<Ident>(&["", "Lan", "LAN/1", "a/b", "-a", "_a", "ü", "a b", &long]), @"
    `` is not an identifier: it is empty
    `Lan` is not an identifier: `L` at character 1 is upper case; write `lan`
    `LAN/1` is not an identifier: `L` at character 1 is none of `a` to `z`, `0` to `9`, `.`, `_` and `-`
    `a/b` is not an identifier: `/` at character 2 is none of `a` to `z`, `0` to `9`, `.`, `_` and `-`
    `-a` is not an identifier: `-` at character 1 cannot begin it; a letter or digit can
    `_a` is not an identifier: `_` at character 1 cannot begin it; a letter or digit can
    `ü` is not an identifier: `ü` at character 1 is none of `a` to `z`, `0` to `9`, `.`, `_` and `-`
    `a b` is not an identifier: ` ` at character 2 is none of `a` to `z`, `0` to `9`, `.`, `_` and `-`
    `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` is not an identifier: it has 64 characters, the most is 63
    ");
    let long = "a".repeat(254);
    assert_snapshot!(of::<Key>(&["", " a", "a\n", "a\tb", "a\u{0}b", "a\u{200b}b", &long]), @r"
    `` is not a key: it is empty
    ` a` is not a key: it begins or ends with white space
    `a\n` is not a key: it begins or ends with white space
    `a\tb` is not a key: `\t` at character 2 cannot be printed
    `a\0b` is not a key: `\0` at character 2 cannot be printed
    `a\u{200b}b` is not a key: `\u{200b}` at character 2 cannot be printed
    `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…` is not a key: it has 254 characters, the most is 253
    ");
    assert_snapshot!(of::<Kind>(&["ipv5"]), @"`ipv5` is not a kind of address: it is `ipv4`, `ipv6` or `mac`");
}

#[test]
fn an_error_points_at_a_byte_and_tells_a_character() {
    let error = "äö..de".parse::<Name>().unwrap_err();
    assert_eq!((error.at, error.reason.as_str()), (Some(5), "the label at character 4 is empty"));
    let error = ParseError::new("word", "äx", Some(2), "`x` is no vowel");
    assert_snapshot!(error, @"`äx` is not a word: `x` is no vowel (at character 2)");
}
