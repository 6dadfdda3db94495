//! Parsers answer any input, and a value that is accepted is written and read again the same.

use std::{fmt::Display, str::FromStr};

use netstead_model::{Address, Cidr, Ident, Key, Kind, Name, ParseError, Range, is_host_label};
use proptest::prelude::*;

use crate::strategies::text;

fn check<T>(text: &str, parsed: Result<T, ParseError>) -> Result<(), TestCaseError>
where
    T: FromStr<Err = ParseError> + Display + PartialEq + std::fmt::Debug,
{
    match parsed {
        Ok(value) => prop_assert_eq!(value.to_string().parse(), Ok(value)),
        Err(error) => {
            prop_assert_eq!(&error.input, text);
            prop_assert!(error.at.is_none_or(|at| text.is_char_boundary(at)), "{:?}", error);
            let message = error.to_string();
            prop_assert!(!message.chars().any(char::is_control), "{:?}", message);
            prop_assert!(message.len() < 3000, "{}", message);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_a_parser_panic(text in text()) {
        check::<Kind>(&text, text.parse())?;
        check::<Address>(&text, text.parse())?;
        for kind in [Kind::V4, Kind::V6, Kind::Mac] {
            check::<Address>(&text, Address::parse(kind, &text))?;
        }
        check::<Cidr>(&text, text.parse())?;
        check::<Range>(&text, text.parse())?;
        check::<Name>(&text, text.parse())?;
        check::<Name>(&text, Name::host(&text))?;
        check::<Ident>(&text, text.parse())?;
        check::<Key>(&text, text.parse())?;
        check::<Ident>(&text, is_host_label(&text).map(|()| "a".parse().unwrap()))?;
    }
}
