//! Setters of jobs and of other settings.

/// Defines setters of a struct. Each setter sets the field of the same name. A field that is an
/// `Option` takes `impl Into<Option<T>>`: a value, or `None`. For the crates of this workspace.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        impl $name {
            $($(#[$doc])*
            pub fn $field(self, $field: $type) -> Self {
                Self { $field: $field.into(), ..self }
            })*
        }
    };
}
