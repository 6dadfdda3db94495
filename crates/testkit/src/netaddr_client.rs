//! [`NetaddrClient`]: the transactions of terraform-provider-netaddr, one by one, over etcd's JSON interface.
//!
//! The original is in no registry. This does what it does, with its order of requests, its conditions and its faults.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use data_encoding::BASE64;
use serde_json::{Value as Json, json};

const PATIENCE: Duration = Duration::from_secs(20);
/// Attempts of a creation, as the original's `retries`.
const RETRIES: u32 = 10;

/// A client of one etcd that behaves as the original provider.
#[derive(Debug)]
pub struct NetaddrClient {
    address: String,
    stream: BufReader<TcpStream>,
}

/// A creation of a fixed address whose last transaction was not sent yet.
#[derive(Debug)]
pub struct HardcodedCreation {
    prefix: String,
    name: String,
    address: Vec<u8>,
    was_deleted: bool,
}

/// One attempt of a creation in one range.
#[derive(Debug)]
struct Attempt {
    compare: Vec<Json>,
    success: Vec<Json>,
    address: Vec<u8>,
}

#[derive(Debug)]
struct KeyValue {
    key: Vec<u8>,
    value: Vec<u8>,
    version: i64,
}

/// Sixteen bytes, as the keyspace has IPv4 addresses.
pub fn netaddr_ipv4(octets: [u8; 4]) -> Vec<u8> {
    [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff].as_slice(), &octets].concat()
}

impl NetaddrClient {
    /// Speaks with the member at `endpoint`, such as `http://127.0.0.1:2379`.
    pub fn connect(endpoint: &str) -> io::Result<Self> {
        let address = endpoint.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream: BufReader::new(stream) })
    }

    pub fn create_range(&mut self, prefix: &str, kind: &str, first: &[u8], last: &[u8]) -> io::Result<bool> {
        let pairs = [
            (key(prefix, "info/type"), kind.as_bytes()),
            (key(prefix, "info/firstaddr"), first),
            (key(prefix, "info/lastaddr"), last),
            (key(prefix, "data/nextaddr"), first),
        ];
        let compare: Vec<Json> = pairs.iter().map(|(key, _)| version(key, 0)).collect();
        let success: Vec<Json> = pairs.iter().map(|(key, value)| put(key, value)).collect();
        self.transaction(&compare, &success)
    }

    /// Deletes everything that begins with the prefix, as the original does.
    pub fn delete_range(&mut self, prefix: &str) -> io::Result<()> {
        let range =
            json!({ "key": encode(prefix.as_bytes()), "range_end": encode(&end_of(prefix.as_bytes())) });
        self.call("/v3/kv/deleterange", &range).map(drop)
    }

    /// A name's address.
    pub fn look_up(&mut self, prefix: &str, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.get(&name_key(prefix, name))?.map(|kv| kv.value))
    }

    pub fn create_hardcoded(&mut self, prefix: &str, name: &str, address: &[u8]) -> io::Result<bool> {
        let creation = self.begin_hardcoded(prefix, name, address)?;
        self.finish_hardcoded(&creation)
    }

    /// All of a creation but its transaction.
    pub fn begin_hardcoded(
        &mut self,
        prefix: &str,
        name: &str,
        address: &[u8],
    ) -> io::Result<HardcodedCreation> {
        self.range_bounds(prefix)?;
        let was_deleted = self.get(&address_key(prefix, "deleted", address))?.is_some();
        let (prefix, name, address) = (prefix.to_owned(), name.to_owned(), address.to_vec());
        Ok(HardcodedCreation { prefix, name, address, was_deleted })
    }

    pub fn finish_hardcoded(&mut self, creation: &HardcodedCreation) -> io::Result<bool> {
        let HardcodedCreation { prefix, name, address, was_deleted } = creation;
        let at = |list| address_key(prefix, list, address);
        let mut compare = vec![
            version(&at("hardcoded"), 0),
            version(&at("generated"), 0),
            version(&name_key(prefix, name), 0),
        ];
        let mut success = vec![put(&at("hardcoded"), name.as_bytes()), put(&name_key(prefix, name), address)];
        if *was_deleted {
            compare.push(present(&at("deleted")));
            success.push(delete(&at("deleted")));
        }
        self.transaction(&compare, &success)
    }

    /// An address of the first of these ranges with room; `None` after its retries, or when all are full.
    pub fn create_generated(&mut self, prefixes: &[&str], name: &str) -> io::Result<Option<Vec<u8>>> {
        for _ in 0..=RETRIES {
            for prefix in prefixes {
                if self.look_up(prefix, name)?.is_some() {
                    return Ok(None);
                }
            }
            let unassigned: Vec<Json> =
                prefixes.iter().map(|prefix| version(&name_key(prefix, name), 0)).collect();
            let mut full = true;
            for prefix in prefixes {
                let Some(Attempt { compare, success, address }) = self.next_of(prefix, name)? else {
                    continue;
                };
                full = false;
                if self.transaction(&[unassigned.clone(), compare].concat(), &success)? {
                    return Ok(Some(address));
                }
                break;
            }
            if full {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn next_of(&mut self, prefix: &str, name: &str) -> io::Result<Option<Attempt>> {
        let list = key(prefix, "data/address/deleted/");
        let assign = |address: &[u8]| {
            vec![
                put(&address_key(prefix, "generated", address), name.as_bytes()),
                put(&name_key(prefix, name), address),
            ]
        };
        if let Some(first) = self.all(&list)?.into_iter().next() {
            let address = first.key.get(list.len()..).unwrap_or_default().to_vec();
            let mut success = assign(&address);
            success.push(delete(&first.key));
            return Ok(Some(Attempt { compare: vec![present(&first.key)], success, address }));
        }
        let (_, last) = self.range_bounds(prefix)?;
        let next_key = key(prefix, "data/nextaddr");
        let Some(next) = self.get(&next_key)? else { return Ok(None) };
        let mut address = next.value;
        while self.get(&address_key(prefix, "hardcoded", &address))?.is_some() {
            address = successor(&address);
        }
        if address > last {
            return Ok(None);
        }
        let mut success = assign(&address);
        success.push(put(&next_key, &successor(&address)));
        let free = version(&address_key(prefix, "hardcoded", &address), 0);
        Ok(Some(Attempt { compare: vec![version(&next_key, next.version), free], success, address }))
    }

    pub fn delete_generated(&mut self, prefix: &str, name: &str, address: &[u8]) -> io::Result<bool> {
        let generated = address_key(prefix, "generated", address);
        let compare = vec![present(&generated), present(&name_key(prefix, name))];
        let success = vec![
            delete(&generated),
            delete(&name_key(prefix, name)),
            put(&address_key(prefix, "deleted", address), name.as_bytes()),
        ];
        self.transaction(&compare, &success)
    }

    pub fn delete_hardcoded(&mut self, prefix: &str, name: &str, address: &[u8]) -> io::Result<bool> {
        let next_key = key(prefix, "data/nextaddr");
        let next = self.get(&next_key)?.ok_or_else(|| io::Error::other("the range is gone"))?;
        let hardcoded = address_key(prefix, "hardcoded", address);
        let mut compare = vec![present(&hardcoded), present(&name_key(prefix, name))];
        let mut success = vec![delete(&hardcoded), delete(&name_key(prefix, name))];
        if address < next.value.as_slice() {
            success.push(put(&address_key(prefix, "deleted", address), name.as_bytes()));
        } else {
            compare.push(version(&next_key, next.version));
        }
        self.transaction(&compare, &success)
    }

    /// Everything that begins with the prefix.
    pub fn dump(&mut self, prefix: &str) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let all = self.all(prefix.as_bytes())?;
        Ok(all.into_iter().map(|kv| (kv.key, kv.value)).collect())
    }

    /// Writes a key as it is.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.transaction(&[], &[put(key, value)]).map(drop)
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) -> io::Result<()> {
        self.transaction(&[], &[delete(key)]).map(drop)
    }

    fn range_bounds(&mut self, prefix: &str) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let info = self.all(&key(prefix, "info/"))?;
        let value = |path: &str| {
            let found = info.iter().find(|kv| kv.key == key(prefix, path)).map(|kv| kv.value.clone());
            found.filter(|_| info.len() == 3).ok_or_else(|| io::Error::other("the range does not exist"))
        };
        Ok((value("info/firstaddr")?, value("info/lastaddr")?))
    }

    fn get(&mut self, key: &[u8]) -> io::Result<Option<KeyValue>> {
        let found = self.call("/v3/kv/range", &json!({ "key": encode(key) }))?;
        Ok(pairs(&found).into_iter().next())
    }

    fn all(&mut self, prefix: &[u8]) -> io::Result<Vec<KeyValue>> {
        let range = json!({ "key": encode(prefix), "range_end": encode(&end_of(prefix)) });
        Ok(pairs(&self.call("/v3/kv/range", &range)?))
    }

    fn transaction(&mut self, compare: &[Json], success: &[Json]) -> io::Result<bool> {
        let answer = self.call("/v3/kv/txn", &json!({ "compare": compare, "success": success }))?;
        Ok(answer.get("succeeded").and_then(Json::as_bool).unwrap_or_default())
    }

    fn call(&mut self, path: &str, body: &Json) -> io::Result<Json> {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        let (mut length, mut chunked, mut status) = (0, false, String::new());
        self.stream.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().unwrap_or(0);
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        let mut text = Vec::new();
        if chunked {
            loop {
                let mut line = String::new();
                self.stream.read_line(&mut line)?;
                let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk)?;
                chunk.truncate(size);
                text.extend(chunk);
                if size == 0 {
                    break;
                }
            }
        } else {
            text.resize(length, 0);
            self.stream.read_exact(&mut text)?;
        }
        if !status.contains(" 200 ") {
            return Err(io::Error::other(format!("{status}{}", String::from_utf8_lossy(&text))));
        }
        serde_json::from_slice(&text).map_err(io::Error::other)
    }
}

/// The next address, as the original counts: after the last one there is comes an empty one.
fn successor(address: &[u8]) -> Vec<u8> {
    let mut bytes = address.to_vec();
    for byte in bytes.iter_mut().rev() {
        let (more, over) = byte.overflowing_add(1);
        *byte = more;
        if !over {
            return bytes;
        }
    }
    Vec::new()
}

fn key(prefix: &str, path: &str) -> Vec<u8> {
    format!("{prefix}{path}").into_bytes()
}

fn name_key(prefix: &str, name: &str) -> Vec<u8> {
    key(prefix, &format!("data/name/{name}"))
}

fn address_key(prefix: &str, list: &str, address: &[u8]) -> Vec<u8> {
    [key(prefix, &format!("data/address/{list}/")).as_slice(), address].concat()
}

fn end_of(prefix: &[u8]) -> Vec<u8> {
    successor(prefix)
}

fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

fn version(key: &[u8], version: i64) -> Json {
    json!({ "key": encode(key), "target": "VERSION", "result": "EQUAL", "version": version.to_string() })
}

fn present(key: &[u8]) -> Json {
    json!({ "key": encode(key), "target": "VERSION", "result": "GREATER", "version": "0" })
}

fn put(key: &[u8], value: &[u8]) -> Json {
    json!({ "requestPut": { "key": encode(key), "value": encode(value) } })
}

fn delete(key: &[u8]) -> Json {
    json!({ "requestDeleteRange": { "key": encode(key) } })
}

fn pairs(found: &Json) -> Vec<KeyValue> {
    let decode = |kv: &Json, field: &str| {
        let text = kv.get(field).and_then(Json::as_str).unwrap_or_default();
        BASE64.decode(text.as_bytes()).unwrap_or_default()
    };
    let of = |kv: &Json| KeyValue {
        key: decode(kv, "key"),
        value: decode(kv, "value"),
        version: kv.get("version").and_then(Json::as_str).and_then(|text| text.parse().ok()).unwrap_or(0),
    };
    found.get("kvs").and_then(Json::as_array).map(|kvs| kvs.iter().map(of).collect()).unwrap_or_default()
}
