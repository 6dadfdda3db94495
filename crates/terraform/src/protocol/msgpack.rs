//! Values on the wire: msgpack, with extension types for what is unknown.

use std::io::Cursor;

use rmp::{Marker, decode, encode};

use super::{
    kind::{Kind, number},
    messages::DynamicValue,
    value::{Object, Refinement, Value},
};

/// Extension type of an unknown value with facts about it.
const REFINED: i8 = 12;
/// Extension type of an unknown value without.
const UNKNOWN: i8 = 0;
/// Keys of the map of facts.
const IS_NULL: u64 = 1;
const PREFIX: u64 = 2;
/// Values inside of values. No schema of this provider has so many.
const DEEPEST: usize = 32;

/// Why a value cannot be read: Terraform and this provider disagree about the schema.
#[derive(Debug, thiserror::Error)]
#[error("a value of Terraform cannot be read: {reason}")]
pub struct BadValue {
    reason: String,
}

impl BadValue {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    fn ends() -> Self {
        Self::new("it ends too early")
    }
}

/// Reads a value of this type. `None` and an empty message are null.
pub fn decode(kind: &Kind, value: Option<&DynamicValue>) -> Result<Value, BadValue> {
    let Some(value) = value else { return Ok(Value::Null) };
    if value.msgpack.is_empty() {
        if value.json.is_empty() {
            return Ok(Value::Null);
        }
        let json = serde_json::from_slice(&value.json).map_err(|error| BadValue::new(error.to_string()))?;
        return kind.from_json(&json).map_err(BadValue::new);
    }
    Reader { bytes: Cursor::new(&value.msgpack) }.value(kind, 0)
}

pub fn encode(value: &Value) -> DynamicValue {
    let mut msgpack = Vec::new();
    // Writing to memory does not fail.
    let _ = write(&mut msgpack, value);
    DynamicValue { msgpack, json: Vec::new() }
}

struct Reader<'a> {
    bytes: Cursor<&'a Vec<u8>>,
}

impl Reader<'_> {
    fn value(&mut self, kind: &Kind, depth: usize) -> Result<Value, BadValue> {
        if depth > DEEPEST {
            return Err(BadValue::new("it is nested too deeply"));
        }
        let marker = self.marker()?;
        if let Some(length) = self.extension(marker)? {
            return self.unknown(length).map(Value::Unknown);
        }
        match (kind, marker) {
            (_, Marker::Null) => Ok(Value::Null),
            (_, Marker::True) => Ok(Value::Bool(true)),
            (_, Marker::False) => Ok(Value::Bool(false)),
            (_, Marker::FixPos(value)) => Ok(Value::Int(value.into())),
            (_, Marker::FixNeg(value)) => Ok(Value::Int(value.into())),
            (_, Marker::U8) => Ok(Value::Int(self.byte()?.into())),
            (_, Marker::U16) => Ok(Value::Int(u16::from_be_bytes(self.array()?).into())),
            (_, Marker::U32) => Ok(Value::Int(u32::from_be_bytes(self.array()?).into())),
            (_, Marker::U64) => Ok(u64::from_be_bytes(self.array()?).into()),
            (_, Marker::I8) => Ok(Value::Int(i8::from_be_bytes(self.array()?).into())),
            (_, Marker::I16) => Ok(Value::Int(i16::from_be_bytes(self.array()?).into())),
            (_, Marker::I32) => Ok(Value::Int(i32::from_be_bytes(self.array()?).into())),
            (_, Marker::I64) => Ok(Value::Int(i64::from_be_bytes(self.array()?))),
            (_, Marker::F32) => Ok(Value::Float(f32::from_be_bytes(self.array()?).into())),
            (_, Marker::F64) => Ok(Value::Float(f64::from_be_bytes(self.array()?))),
            (
                kind,
                Marker::FixStr(_)
                | Marker::Str8
                | Marker::Str16
                | Marker::Str32
                | Marker::Bin8
                | Marker::Bin16
                | Marker::Bin32,
            ) => {
                let text = self.text(marker)?;
                match kind {
                    Kind::Number => {
                        number(&text).ok_or_else(|| BadValue::new(format!("`{text}` is no number")))
                    }
                    _ => Ok(Value::Text(text)),
                }
            }
            (Kind::List(of) | Kind::Set(of), Marker::FixArray(_) | Marker::Array16 | Marker::Array32) => {
                let length = self.length(marker)?;
                (0..length).map(|_| self.value(of, depth + 1)).collect::<Result<_, _>>().map(Value::List)
            }
            (Kind::Map(of), Marker::FixMap(_) | Marker::Map16 | Marker::Map32) => {
                self.pairs(marker, |reader, _| reader.value(of, depth + 1))
            }
            (Kind::Object(fields), Marker::FixMap(_) | Marker::Map16 | Marker::Map32) => {
                self.pairs(marker, |reader, name| {
                    let field = fields.iter().find(|(field, _)| *field == name);
                    let (_, kind) =
                        field.ok_or_else(|| BadValue::new(format!("`{name}` is not in the schema")))?;
                    reader.value(kind, depth + 1)
                })
            }
            (kind, marker) => Err(BadValue::new(format!("{marker:?} where a {} is expected", kind.words()))),
        }
    }

    /// An unknown value, of which `length` bytes with its type come next.
    fn unknown(&mut self, length: usize) -> Result<Refinement, BadValue> {
        let (kind, facts) = self.take(length)?.split_first().ok_or_else(BadValue::ends)?;
        let mut refinement = Refinement::default();
        if i8::from_be_bytes([*kind]) != REFINED {
            return Ok(refinement);
        }
        let facts = facts.to_vec();
        let mut facts = Reader { bytes: Cursor::new(&facts) };
        let marker = facts.marker()?;
        for _ in 0..facts.length(marker)? {
            let Value::Int(fact) = facts.value(&Kind::Number, 0)? else {
                return Err(BadValue::new("a fact about an unknown value has no number"));
            };
            let begin = facts.place();
            match (u64::try_from(fact).unwrap_or_default(), begin) {
                (IS_NULL, _) => refinement.not_null = facts.value(&Kind::Bool, 0)? == Value::Bool(false),
                (PREFIX, _) => {
                    let marker = facts.marker()?;
                    refinement.prefix = Some(facts.text(marker)?);
                }
                (other, begin) => {
                    facts.skip_value(0)?;
                    let all: &[u8] = facts.bytes.get_ref();
                    let raw = all.get(begin..facts.place()).unwrap_or_default();
                    refinement.others.push((other, raw.to_vec()));
                }
            }
        }
        Ok(refinement)
    }

    /// A value of any type, which nothing here looks into.
    fn skip_value(&mut self, depth: usize) -> Result<(), BadValue> {
        if depth > DEEPEST {
            return Err(BadValue::new("it is nested too deeply"));
        }
        let marker = self.marker()?;
        if let Some(length) = self.extension(marker)? {
            return self.take(length).map(drop);
        }
        let (bytes, values) = match marker {
            Marker::FixStr(_)
            | Marker::Str8
            | Marker::Str16
            | Marker::Str32
            | Marker::Bin8
            | Marker::Bin16
            | Marker::Bin32 => (self.length(marker)?, 0),
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => (0, self.length(marker)?),
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => (0, self.length(marker)?.saturating_mul(2)),
            Marker::U8 | Marker::I8 => (1, 0),
            Marker::U16 | Marker::I16 => (2, 0),
            Marker::U32 | Marker::I32 | Marker::F32 => (4, 0),
            Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
            _ => (0, 0),
        };
        self.take(bytes)?;
        (0..values).try_for_each(|_| self.skip_value(depth + 1))
    }

    fn place(&self) -> usize {
        usize::try_from(self.bytes.position()).unwrap_or(usize::MAX)
    }

    fn pairs(
        &mut self,
        marker: Marker,
        mut read: impl FnMut(&mut Self, &str) -> Result<Value, BadValue>,
    ) -> Result<Value, BadValue> {
        let mut object = Object::new();
        for _ in 0..self.length(marker)? {
            let marker = self.marker()?;
            let name = self.text(marker)?;
            let value = read(self, &name)?;
            object.insert(name, value);
        }
        Ok(Value::Map(object))
    }

    fn marker(&mut self) -> Result<Marker, BadValue> {
        decode::read_marker(&mut self.bytes).map_err(|_| BadValue::ends())
    }

    fn byte(&mut self) -> Result<u8, BadValue> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadValue> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    fn take(&mut self, length: usize) -> Result<&[u8], BadValue> {
        let begin = self.place();
        let end = begin.saturating_add(length);
        let all: &[u8] = self.bytes.get_ref();
        let part = all.get(begin..end).ok_or_else(BadValue::ends)?;
        self.bytes.set_position(end as u64);
        Ok(part)
    }

    /// The bytes of an extension type after its marker, its type included.
    fn extension(&mut self, marker: Marker) -> Result<Option<usize>, BadValue> {
        let length = match marker {
            Marker::FixExt1 => 1,
            Marker::FixExt2 => 2,
            Marker::FixExt4 => 4,
            Marker::FixExt8 => 8,
            Marker::FixExt16 => 16,
            Marker::Ext8 => self.byte()?.into(),
            Marker::Ext16 => u16::from_be_bytes(self.array()?).into(),
            Marker::Ext32 => u32::from_be_bytes(self.array()?) as usize,
            _ => return Ok(None),
        };
        Ok(Some(length + 1))
    }

    fn length(&mut self, marker: Marker) -> Result<usize, BadValue> {
        Ok(match marker {
            Marker::FixStr(length) | Marker::FixArray(length) | Marker::FixMap(length) => length.into(),
            Marker::Str8 | Marker::Bin8 => self.byte()?.into(),
            Marker::Str16 | Marker::Bin16 | Marker::Array16 | Marker::Map16 => {
                u16::from_be_bytes(self.array()?).into()
            }
            Marker::Str32 | Marker::Bin32 | Marker::Array32 | Marker::Map32 => {
                u32::from_be_bytes(self.array()?) as usize
            }
            other => return Err(BadValue::new(format!("{other:?} has no length"))),
        })
    }

    fn text(&mut self, marker: Marker) -> Result<String, BadValue> {
        let length = self.length(marker)?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| BadValue::new("a text is not UTF-8"))
    }
}

fn write(out: &mut Vec<u8>, value: &Value) -> Result<(), encode::ValueWriteError> {
    match value {
        Value::Null => encode::write_nil(out).map_err(encode::ValueWriteError::InvalidMarkerWrite),
        Value::Bool(value) => {
            encode::write_bool(out, *value).map_err(encode::ValueWriteError::InvalidMarkerWrite)
        }
        Value::Int(value) => encode::write_sint(out, *value).map(drop),
        Value::Float(value) => encode::write_f64(out, *value),
        Value::Text(text) => encode::write_str(out, text),
        Value::List(items) => {
            encode::write_array_len(out, length(items.len()))?;
            items.iter().try_for_each(|item| write(out, item))
        }
        Value::Map(items) => {
            encode::write_map_len(out, length(items.len()))?;
            items.iter().try_for_each(|(key, item)| {
                encode::write_str(out, key)?;
                write(out, item)
            })
        }
        Value::Unknown(refinement) => write_unknown(out, refinement),
    }
}

fn write_unknown(out: &mut Vec<u8>, refinement: &Refinement) -> Result<(), encode::ValueWriteError> {
    let Refinement { not_null, prefix, others } = refinement;
    let facts = u32::from(*not_null) + u32::from(prefix.is_some()) + length(others.len());
    if facts == 0 {
        encode::write_ext_meta(out, 1, UNKNOWN)?;
        out.push(0);
        return Ok(());
    }
    let mut payload = Vec::new();
    encode::write_map_len(&mut payload, facts)?;
    if *not_null {
        encode::write_uint(&mut payload, IS_NULL)?;
        encode::write_bool(&mut payload, false).map_err(encode::ValueWriteError::InvalidMarkerWrite)?;
    }
    if let Some(prefix) = prefix {
        encode::write_uint(&mut payload, PREFIX)?;
        encode::write_str(&mut payload, prefix)?;
    }
    for (fact, raw) in others {
        encode::write_uint(&mut payload, *fact)?;
        payload.extend(raw);
    }
    encode::write_ext_meta(out, length(payload.len()), REFINED)?;
    out.extend(payload);
    Ok(())
}

/// No value in memory has more elements than this.
fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Kind {
        Kind::Object(vec![
            ("name", Kind::Text),
            ("size", Kind::Number),
            ("on", Kind::Bool),
            ("all", Kind::set_of(Kind::Text)),
            ("labels", Kind::map_of(Kind::Text)),
        ])
    }

    #[test]
    fn what_is_written_is_read() {
        for size in [Value::Int(-7), Value::Int(1 << 40), Value::Float(0.5), Value::Null, Value::UNKNOWN] {
            let value = Value::Map(
                [
                    ("name".into(), Value::from("é".repeat(300))),
                    ("size".into(), size),
                    ("on".into(), true.into()),
                    ("all".into(), vec!["a", "b"].into()),
                    ("labels".into(), Value::Map([("k".into(), "v".into())].into())),
                ]
                .into(),
            );
            assert_eq!(decode(&object(), Some(&encode(&value))).unwrap(), value);
        }
    }

    #[test]
    fn a_refined_unknown_is_an_unknown_with_its_facts_on_the_wire_and_keeps_those_it_does_not_know() {
        let refinement = Refinement { not_null: true, prefix: Some("10.".into()), others: Vec::new() };
        let refined = Value::Unknown(refinement.clone());
        let wire = encode(&refined);
        assert_eq!(wire.msgpack, b"\xd7\x0c\x82\x01\xc2\x02\xa310.");
        assert_eq!(decode(&Kind::Text, Some(&wire)).unwrap(), refined);
        // A lower bound of a number, `[1, true]`, and a length of at least 3.
        let others = vec![(3, b"\x92\x01\xc3".to_vec()), (5, b"\x03".to_vec())];
        let refined = Value::Unknown(Refinement { others, ..refinement });
        assert_eq!(decode(&Kind::Text, Some(&encode(&refined))).unwrap(), refined);
        for half in [b"\xd5\x0c\x81\x01".as_slice(), b"\xd4\x0c\x81", b"\xd6\x0c\x81\x03\xdd\xff"] {
            let wire = DynamicValue { msgpack: half.to_vec(), json: Vec::new() };
            assert!(decode(&Kind::Text, Some(&wire)).is_err(), "{half:?}");
        }
        assert_eq!(encode(&Value::UNKNOWN).msgpack, b"\xd4\x00\x00");
    }

    #[test]
    fn a_number_may_come_as_text_and_half_a_value_is_refused() {
        let wire = |msgpack: &[u8]| DynamicValue { msgpack: msgpack.to_vec(), json: Vec::new() };
        assert_eq!(decode(&Kind::Number, Some(&wire(b"\xa212"))).unwrap(), Value::Int(12));
        for (half, kind) in [
            (b"\xa312".as_slice(), Kind::Text),
            (b"\xdd\xff\xff\xff\xff", Kind::list_of(Kind::Text)),
            (b"\xdf\xff\xff\xff\xff\xa1a", Kind::map_of(Kind::Text)),
            (b"\xc9\xff\xff\xff\xff\x00", Kind::Text),
            (b"\x81\xa5other\xc0", object()),
        ] {
            assert!(decode(&kind, Some(&wire(half))).is_err(), "{half:?}");
        }
        assert_eq!(decode(&Kind::Text, None).unwrap(), Value::Null);
    }
}
