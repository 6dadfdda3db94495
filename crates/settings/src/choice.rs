//! Keys whose value is one of a few words.

/// Makes an enum of the words that a key may have.
///
/// ```
/// netstead_settings::choice! {
///     /// How a zone is read.
///     pub enum Read {
///         /// By AXFR.
///         Transfer = "transfer",
///         /// Each name is asked for.
///         Query = "query",
///     }
/// }
/// assert_eq!(Read::Query.as_str(), "query");
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $( $(#[$variant_meta])* $variant ),+
        }

        impl $name {
            pub const ALL: &'static [(&'static str, Self)] = &[ $( ($word, Self::$variant) ),+ ];

            /// The word in the file.
            #[allow(dead_code, reason = "a macro makes it for every choice")]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word ),+
                }
            }
        }

        impl $crate::Setting for $name {
            fn shape() -> $crate::Shape {
                $crate::Shape::Choice(vec![ $( $word ),+ ])
            }

            fn read(section: &mut $crate::Section<'_, '_>, key: &str) -> Option<Self> {
                let word = section.choice(key, &[ $( $word ),+ ])?;
                Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, value)| *value)
            }

            fn shown(&self) -> $crate::macros::Json {
                $crate::macros::Json::from(self.as_str())
            }
        }
    };
}
