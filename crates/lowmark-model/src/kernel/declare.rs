//! How mechanisms are declared: one entry gives the enum, its field in its group of `Mechanisms`, its names on the
//! command line, its text in lists, and the variants of other mechanisms that it works with.
//!
//! `group: Group { field: Name [within subject] { Variant = "name" [needs(group.other = Pattern, …)], … } … }`
//!
//! * The first variant is that of the oldest kernel.
//! * `within` names the subject of [`Coverage`](super::Coverage) that the mechanism is a part of: where the model leaves
//!   the subject out, the mechanism decides nothing.
//! * `needs` says with which variants of other mechanisms a variant works. Kernels never combined it with others, and
//!   [`Kernel::resolve`](super::Kernel::resolve) refuses to.

macro_rules! mechanisms {
    (; $( $(#[doc = $gdoc:literal])* $group:ident : $gname:ident { $(
        $(#[doc = $doc:literal])* $field:ident : $name:ident $(within $subject:ident)? {
            $( $(#[doc = $vdoc:literal])* $variant:ident = $text:literal
                $(needs( $( $ngroup:ident . $needed:ident = $pattern:pat ),+ ))?, )*
        }
    )* } )*) => {
        $( $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub enum $name { $( $(#[doc = $vdoc])* $variant, )* }

            impl $name {
                /// Every variant with its name.
                pub const VARIANTS: &'static [(&'static str, $name)] = &[ $( ($text, $name::$variant) ),* ];
            }
        )* )*

        $(
            $(#[doc = $gdoc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $gname { $( $(#[doc = $doc])* pub $field: $name, )* }
        )*

        /// One variant of every mechanism.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Mechanisms { $( $(#[doc = $gdoc])* pub $group: $gname, )* }

        /// What can be said about a mechanism without running it.
        #[derive(Debug, Clone, Copy)]
        pub struct Description {
            /// Name as `--kernel` takes it.
            pub name: &'static str,
            /// The group that it is declared in.
            pub group: &'static str,
            /// What it is, one paragraph.
            pub doc: &'static str,
            /// What of the kernel it is a part of, by its name in [`Coverage`](crate::kernel::Coverage).
            pub within: Option<&'static str>,
            /// Name and text of each variant, that of the oldest kernel first.
            pub variants: &'static [(&'static str, &'static str)],
        }

        /// A variant of one mechanism that works with some variants of another only.
        #[derive(Debug, Clone, Copy)]
        pub struct Need {
            /// The mechanism.
            pub mechanism: &'static str,
            /// Its variant that has the need.
            pub variant: &'static str,
            /// The other mechanism.
            pub other: &'static str,
            is_set: fn(&Mechanisms) -> bool,
            is_met: fn(&Mechanisms) -> bool,
        }

        /// Which variants work with which.
        pub const NEEDS: &[Need] = &[ $( $( $( $( $( Need {
            mechanism: stringify!($field),
            variant: $text,
            other: stringify!($needed),
            is_set: |m| m.$group.$field == $name::$variant,
            is_met: |m| matches!(m.$ngroup.$needed, $pattern),
        }, )+ )? )* )* )* ];

        impl Need {
            /// Whether a set of mechanisms has the variant without what it works with.
            pub fn is_violated(&self, mechanisms: &Mechanisms) -> bool {
                (self.is_set)(mechanisms) && !(self.is_met)(mechanisms)
            }

            /// Names of the other mechanism's variants that it works with.
            pub fn works_with(&self) -> Vec<&'static str> {
                let other = DESCRIPTIONS.iter().find(|d| d.name == self.other);
                let names = other.map_or(&[][..], |other| other.variants);
                let met = |variant: &&str| {
                    let mut mechanisms = Mechanisms::oldest();
                    mechanisms.set(self.other, variant).is_ok() && (self.is_met)(&mechanisms)
                };
                names.iter().map(|(name, _)| *name).filter(met).collect()
            }
        }

        /// All mechanisms.
        pub const DESCRIPTIONS: &[Description] = &[ $( $( Description {
            name: stringify!($field),
            group: stringify!($group),
            doc: concat!($($doc),*),
            within: super::declare::only(&[$(stringify!($subject))?]),
            variants: &[ $( ($text, concat!($($vdoc),*)) ),* ],
        }, )* )* ];

        impl Mechanisms {
            /// Those of the oldest kernel of the model, 2.6.36: the first variant of each.
            pub fn oldest() -> Mechanisms {
                Mechanisms { $( $group: $gname { $( $field: $name::VARIANTS[0].1 ),* } ),* }
            }

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
                    $( $( stringify!($field) => {
                        let found = $name::VARIANTS.iter().find(|(text, _)| *text == variant);
                        self.$group.$field = found.ok_or_else(|| {
                            unknown($name::VARIANTS.iter().map(|(text, _)| *text).collect())
                        })?.1;
                    } )* )*
                    _ => return Err(KernelError::UnknownMechanism { found: mechanism.into() }),
                }
                Ok(())
            }

            /// Name of every mechanism with the name of the variant that is set.
            pub fn settings(&self) -> Vec<(&'static str, &'static str)> {
                vec![ $( $( (
                    stringify!($field),
                    $name::VARIANTS.iter().find(|(_, v)| *v == self.$group.$field).map_or("", |(t, _)| *t),
                ), )* )* ]
            }
        }
    };
}

pub(super) use mechanisms;

/// The element of a list of one; none of an empty list.
pub(super) const fn only(list: &[&'static str]) -> Option<&'static str> {
    match list {
        [first, ..] => Some(*first),
        [] => None,
    }
}
