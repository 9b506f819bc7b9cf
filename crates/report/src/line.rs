//! Any line.

use schemars::JsonSchema;
use serde::Serialize;

use crate::codes::{CodeLine, FamilyLine, ScheduleLine};
use crate::machine::{DecisionLine, DoctorLine, TuningLine};
use crate::protections::{ProtectInfoLine, ProtectLine, ProtectRepairLine, ProtectVerifyLine};
use crate::shards::{
    CleanLine, DecodeLine, EncodeLine, ExportLine, ImportLine, InfoLine, PromoteLine, RepairLine,
    UnrecognisedLine, VerifyLine,
};
use crate::speed::{BenchLine, ComparisonLine};
use crate::status::{ErrorLine, ProgressLine, SummaryLine, WarningLine};
use crate::volumes::{
    ServeLine, VolumeAddLine, VolumeBenchLine, VolumeCatLine, VolumeCollectLine, VolumeDrainLine,
    VolumeGetLine, VolumeInitLine, VolumeLsLine, VolumePromoteLine, VolumePutLine,
    VolumeReencodeLine, VolumeRepairLine, VolumeReplaceLine, VolumeRmLine, VolumeStatLine,
    VolumeStatusLine, VolumeVerifyLine,
};

macro_rules! lines {
    ($($kind:ident($line:ident),)*) => {
        /// With --json, paritas prints one JSON object a line: results and progress on standard
        /// output, warnings and errors on standard error. `decode`, `volume get` and `volume cat`
        /// to standard output print all of them on standard error.
        #[derive(Debug, Clone, Serialize, JsonSchema)]
        #[serde(tag = "type", rename_all = "kebab-case")]
        pub enum Line {
            $(
                #[doc = concat!("See [`", stringify!($line), "`].")]
                $kind($line),
            )*
        }

        $(
            impl From<$line> for Line {
                fn from(line: $line) -> Self {
                    Self::$kind(line)
                }
            }
        )*
    };
}

lines! {
    Protect(ProtectLine),
    ProtectVerify(ProtectVerifyLine),
    ProtectRepair(ProtectRepairLine),
    ProtectInfo(ProtectInfoLine),
    Encode(EncodeLine),
    Decode(DecodeLine),
    Verify(VerifyLine),
    Repair(RepairLine),
    Clean(CleanLine),
    Unrecognised(UnrecognisedLine),
    Summary(SummaryLine),
    Promote(PromoteLine),
    Info(InfoLine),
    Import(ImportLine),
    Export(ExportLine),
    VolumeInit(VolumeInitLine),
    VolumePut(VolumePutLine),
    VolumeGet(VolumeGetLine),
    VolumeCat(VolumeCatLine),
    VolumeLs(VolumeLsLine),
    VolumeStat(VolumeStatLine),
    VolumeRm(VolumeRmLine),
    VolumeVerify(VolumeVerifyLine),
    VolumeRepair(VolumeRepairLine),
    VolumeCollect(VolumeCollectLine),
    VolumePromote(VolumePromoteLine),
    VolumeReencode(VolumeReencodeLine),
    VolumeAdd(VolumeAddLine),
    VolumeDrain(VolumeDrainLine),
    VolumeReplace(VolumeReplaceLine),
    VolumeBench(VolumeBenchLine),
    VolumeStatus(VolumeStatusLine),
    Serve(ServeLine),
    Family(FamilyLine),
    Code(CodeLine),
    Schedule(ScheduleLine),
    Bench(BenchLine),
    Comparison(ComparisonLine),
    Decision(DecisionLine),
    Tuning(TuningLine),
    Doctor(DoctorLine),
    Progress(ProgressLine),
    Warning(WarningLine),
    Error(ErrorLine),
}

impl Line {
    /// Returns the line as JSON.
    ///
    /// # Errors
    /// If serde refuses it, which would be a bug.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
