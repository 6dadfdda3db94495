//! Where names point, found out while Netstead runs.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, TcpListener},
};

use netstead_sources::dynamic_target::{AddressLookup as _, InterfaceLookup, PublicAddressLookup};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A server that says this to everybody.
fn says(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn the_public_address_is_what_those_who_answer_agree_on() {
    let seven = ["203.0.113.7", "203.0.113.7\n"].map(says);
    let public =
        PublicAddressLookup::new([nobody(), seven[0].clone(), seven[1].clone(), says("2001:db8::7")])
            .unwrap();
    assert_eq!(public.locate(&[]).await.unwrap(), [ip("203.0.113.7"), ip("2001:db8::7")]);

    // One that lies: what is known stays.
    let public = PublicAddressLookup::new([says("198.51.100.66"), seven[0].clone()]).unwrap();
    assert_eq!(public.locate(&[ip("203.0.113.7")]).await.unwrap(), [ip("203.0.113.7")]);
    assert!(public.locate(&[]).await.unwrap_err().contains("do not agree"));

    // A family that no server mentions stays too.
    let public = PublicAddressLookup::new(seven).unwrap();
    let known = [ip("203.0.113.9"), ip("2001:db8::9")];
    assert_eq!(public.locate(&known).await.unwrap(), [ip("203.0.113.7"), ip("2001:db8::9")]);
}

#[tokio::test]
async fn what_is_no_public_address_is_not_believed() {
    for (body, told) in [
        ("192.168.1.1", "which is not public"),
        ("fd00::1", "which is not public"),
        ("<html>log in first</html>", "is no address"),
        ("", "is no address"),
    ] {
        let error =
            PublicAddressLookup::new([says(body)]).unwrap().locate(&[ip("203.0.113.7")]).await.unwrap_err();
        assert!(error.contains(told), "{error}");
    }
    assert!(
        PublicAddressLookup::new([nobody()])
            .unwrap()
            .locate(&[])
            .await
            .unwrap_err()
            .contains("http://127.0.0.1:")
    );
}

#[tokio::test]
async fn an_interface_has_its_addresses_or_says_why_not() {
    assert!(InterfaceLookup::new("lo").locate(&[]).await.unwrap().contains(&ip("127.0.0.1")));
    let error = InterfaceLookup::new("nowhere0").locate(&[]).await.unwrap_err();
    assert_eq!(error, "there is no interface `nowhere0`");
}
