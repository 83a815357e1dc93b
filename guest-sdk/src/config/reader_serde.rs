//! Serde deserializer of [`Reader`]: passes each value, or its stand-in, to the type's visitor.
//!
//! A visitor's own refusal gets its path where the value came from: in a list, an object, or at the root.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde_json::Value;

use crate::config::mistakes::{Path, Stop};
use crate::config::reader::{Entries, Items, Reader, Variant, number_text};

macro_rules! numbers {
    ($($method:ident $visit:ident $read:ident $type:ty: $($bound:expr),+;)+) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
            visitor.$visit(self.$read($($bound.into()),+) as $type)
        }
    )+ };
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = Stop;

    numbers! {
        deserialize_u8 visit_u8 unsigned u8: u8::MAX;
        deserialize_u16 visit_u16 unsigned u16: u16::MAX;
        deserialize_u32 visit_u32 unsigned u32: u32::MAX;
        deserialize_u64 visit_u64 unsigned u64: u64::MAX;
        deserialize_i8 visit_i8 signed i8: i8::MIN, i8::MAX;
        deserialize_i16 visit_i16 signed i16: i16::MIN, i16::MAX;
        deserialize_i32 visit_i32 signed i32: i32::MIN, i32::MAX;
        deserialize_i64 visit_i64 signed i64: i64::MIN, i64::MAX;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.value() {
            None | Some(Value::Null) => visitor.visit_unit(),
            Some(Value::Bool(flag)) => visitor.visit_bool(*flag),
            Some(Value::Number(number)) if number.is_u64() => self.deserialize_u64(visitor),
            Some(Value::Number(number)) if number.is_i64() => self.deserialize_i64(visitor),
            Some(Value::Number(_)) => self.deserialize_f64(visitor),
            Some(Value::String(text)) => visitor.visit_str(text),
            Some(Value::Array(_)) => visitor.visit_seq(self.items()),
            Some(Value::Object(_)) => visitor.visit_map(self.entries()),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let number = self.value().map_or(Some(0.0), |value| {
            let number = number_text(value).and_then(|text| text.parse::<f64>().ok());
            if number.is_none() {
                self.wrong("a number", value);
            }
            number
        });
        visitor.visit_f64(number.unwrap_or_default())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_bool(self.flag())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.value() {
            None | Some(Value::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_map(self.entries())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_map(self.fields(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_enum(self.variant(variants))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct identifier }
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        let Some(value) = self.items.get(self.next) else {
            return Ok(None);
        };
        let path = Path::Index(self.path, self.next);
        self.next += 1;
        match seed.deserialize(Reader {
            value: Some(value),
            path: &path,
            notes: self.notes,
        }) {
            Ok(value) => Ok(Some(value)),
            Err(stop) => Err(stop.at(&path)),
        }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Stop> {
        let Some((key, _)) = self.entries.get(self.next) else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Stop> = (*key).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Stop> {
        // serde reads a value only after its key.
        let (key, value) = self.entries.get(self.next).copied().unwrap_or_default();
        self.next += 1;
        let path = Path::Key(self.path, key);
        match seed.deserialize(Reader {
            value,
            path: &path,
            notes: self.notes,
        }) {
            Ok(value) => Ok(value),
            Err(stop) => Err(stop.at(&path)),
        }
    }
}

impl<'de, 'a> de::EnumAccess<'de> for Variant<'a> {
    type Error = Stop;
    type Variant = Reader<'a>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), Stop> {
        let name: StrDeserializer<'_, Stop> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self.content))
    }
}

impl<'de> de::VariantAccess<'de> for Reader<'_> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Stop> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.items())
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_map(self.fields(fields))
    }
}
