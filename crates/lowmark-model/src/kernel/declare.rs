//! How mechanisms are declared: one entry gives the enum, its field in `Mechanisms`, its names on the command
//! line and its text in lists.

macro_rules! mechanisms {
    (; $( $(#[doc = $doc:literal])* $field:ident : $name:ident {
        $( $(#[doc = $vdoc:literal])* $variant:ident = $text:literal, )*
    } )*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub enum $name { $( $(#[doc = $vdoc])* $variant, )* }

            impl $name {
                /// Every variant with its name.
                pub const VARIANTS: &'static [(&'static str, $name)] = &[ $( ($text, $name::$variant) ),* ];
            }
        )*

        /// One variant of every mechanism.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Mechanisms { $( $(#[doc = $doc])* pub $field: $name, )* }

        /// What can be said about a mechanism without running it.
        #[derive(Debug, Clone, Copy)]
        pub struct Description {
            /// Name as `--kernel` takes it.
            pub name: &'static str,
            /// What it is, one paragraph.
            pub doc: &'static str,
            /// Name and text of each variant.
            pub variants: &'static [(&'static str, &'static str)],
        }

        /// All mechanisms.
        pub const DESCRIPTIONS: &[Description] = &[ $( Description {
            name: stringify!($field),
            doc: concat!($($doc),*),
            variants: &[ $( ($text, concat!($($vdoc),*)) ),* ],
        } ),* ];

        impl Mechanisms {
            /// Sets one mechanism by name.
            ///
            /// # Errors
            ///
            /// When there is no such mechanism or variant.
            pub fn set(&mut self, mechanism: &str, variant: &str) -> Result<(), KernelError> {
                let unknown = |known: Vec<&str>| KernelError::UnknownVariant {
                    mechanism: mechanism.into(),
                    found: variant.into(),
                    known: known.join(", "),
                };
                match mechanism {
                    $( stringify!($field) => {
                        let found = $name::VARIANTS.iter().find(|(text, _)| *text == variant);
                        self.$field = found.ok_or_else(|| {
                            unknown($name::VARIANTS.iter().map(|(text, _)| *text).collect())
                        })?.1;
                    } )*
                    _ => return Err(KernelError::UnknownMechanism { found: mechanism.into() }),
                }
                Ok(())
            }

            /// Name of every mechanism with the name of the variant that is set.
            pub fn settings(&self) -> Vec<(&'static str, &'static str)> {
                vec![ $( (
                    stringify!($field),
                    $name::VARIANTS.iter().find(|(_, v)| *v == self.$field).map_or("", |(t, _)| *t),
                ) ),* ]
            }
        }
    };
}

pub(super) use mechanisms;
