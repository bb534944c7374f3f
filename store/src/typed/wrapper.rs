//! Wrapper types that choose the encoding of a value.

/// Defines a wrapper of a value with `serde`, for a text format, or a binary one.
macro_rules! wrapper {
    ($(#[$about:meta])* $name:ident, is_text: $is_text:expr) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name<T, const VERSION: u32 = 1>(pub T);

        impl<T, const VERSION: u32> std::ops::Deref for $name<T, VERSION> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        }

        impl<T, const VERSION: u32> std::ops::DerefMut for $name<T, VERSION> {
            fn deref_mut(&mut self) -> &mut T {
                &mut self.0
            }
        }

        impl<T, const VERSION: u32> $crate::typed::Named for $name<T, VERSION>
        where
            T: serde::de::DeserializeOwned,
        {
            const NAME: &'static str = stringify!($name);
            const VERSION: u32 = VERSION;

            fn name() -> String {
                let name = $crate::typed::serde_name::serde_name::<T>($is_text);
                format!("{}<{name}>", Self::NAME)
            }
        }
    };
}

pub(super) use wrapper;
