//! Functions, which need no server.

use std::net::IpAddr;

use netstead_model::Range;

use crate::protocol::{Function, Kind, Value};

pub fn functions() -> Vec<Function> {
    vec![contains(), mac_from_ip(), reverse_name()]
}

fn text(arguments: &[Value], place: usize) -> &str {
    arguments.get(place).and_then(Value::as_text).unwrap_or_default()
}

fn contains() -> Function {
    Function {
        name: "contains",
        summary: "Whether a range has an address",
        description: "Whether a range, a CIDR or `first-last`, has an address in it. Works for IPv4, IPv6 and MAC addresses.",
        parameters: vec![
            ("range", Kind::Text, "`10.0.3.0/24` or `10.0.3.50-10.0.3.200`"),
            ("address", Kind::Text, "An address"),
        ],
        returns: Kind::Bool,
        call: |arguments| {
            let range: Range = text(arguments, 0).parse().map_err(|error| (0, format!("{error}")))?;
            let address = text(arguments, 1).parse().map_err(|error| (1, format!("{error}")))?;
            Ok(range.contains(address).into())
        },
        example: "output \"inside\" {\n  value = provider::netstead::contains(\"10.0.3.0/24\", \"10.0.3.60\")\n}\n",
    }
}

fn mac_from_ip() -> Function {
    Function {
        name: "mac_from_ip",
        summary: "A MAC address that follows from an IPv4 address",
        description: "A locally administered MAC address with the IPv4 address in its last four bytes: `10.0.3.60` gives \
                      `02:00:0a:00:03:3c`. Different addresses give different MACs.",
        parameters: vec![("address", Kind::Text, "An IPv4 address")],
        returns: Kind::Text,
        call: |arguments| {
            let address: std::net::Ipv4Addr = text(arguments, 0)
                .parse()
                .map_err(|_| (0, format!("`{}` is no IPv4 address", text(arguments, 0))))?;
            let [a, b, c, d] = address.octets();
            Ok(format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}").into())
        },
        example: "output \"mac\" {\n  value = provider::netstead::mac_from_ip(\"10.0.3.60\")\n}\n",
    }
}

fn reverse_name() -> Function {
    Function {
        name: "reverse_name",
        summary: "The name of an address in the reverse zone",
        description: "The name under which the PTR record of an address is: `10.0.3.60` gives `60.3.0.10.in-addr.arpa`.",
        parameters: vec![("address", Kind::Text, "An IPv4 or IPv6 address")],
        returns: Kind::Text,
        call: |arguments| {
            let text = text(arguments, 0);
            let address: IpAddr = text.parse().map_err(|_| (0, format!("`{text}` is no IP address")))?;
            Ok(reverse(address).into())
        },
        example: "output \"ptr\" {\n  value = provider::netstead::reverse_name(\"10.0.3.60\")\n}\n",
    }
}

fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digits = address.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            digits
                .flat_map(|digit| [char::from_digit(digit.into(), 16).unwrap_or('0'), '.'])
                .collect::<String>()
                + "ip6.arpa"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(function: &Function, arguments: &[&str]) -> Result<Value, (usize, String)> {
        (function.call)(&arguments.iter().map(|text| Value::from(*text)).collect::<Vec<_>>())
    }

    #[test]
    fn functions_answer_and_name_the_argument_that_is_wrong() {
        assert_eq!(call(&contains(), &["10.0.3.0/24", "10.0.3.60"]), Ok(true.into()));
        assert_eq!(call(&contains(), &["10.0.3.1-10.0.3.9", "10.0.3.60"]), Ok(false.into()));
        assert_eq!(call(&contains(), &["10.0.3.0/24", "x"]).unwrap_err().0, 1);
        assert_eq!(call(&mac_from_ip(), &["10.0.3.60"]), Ok("02:00:0a:00:03:3c".into()));
        assert_eq!(call(&reverse_name(), &["10.0.3.60"]), Ok("60.3.0.10.in-addr.arpa".into()));
        let six = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(call(&reverse_name(), &["2001:db8::1"]), Ok(six.into()));
    }
}
