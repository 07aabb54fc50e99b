//! Losses, gaps and pauses as markers.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle,
};

/// A time in which samples may be missing.
pub(super) struct MissingMarker {
    /// What it is called.
    pub(super) name: StringHandle,
    /// How many events, on which CPU.
    pub(super) what: StringHandle,
}

impl StaticSchemaMarker for MissingMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "StackpulseMissing";
    const DESCRIPTION: Option<&'static str> = Some("Samples may be missing here.");
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.what}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.what}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "what",
        label: "What",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _field_index: u32) -> StringHandle {
        self.what
    }

    fn number_field_value(&self, _field_index: u32) -> f64 {
        0.0
    }
}
