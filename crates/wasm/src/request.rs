//! The requests.

use paritas::FAMILIES;
use paritas::research::Schedule;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kept::KeptCodecs;
use crate::loss::{LossQuestion, LossSurvey};
use crate::message::Message;
use crate::refusal::{Refusal, Result};
use crate::{facts, loss};

/// A request, by its member `do`.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CallRequest {
    /// Lists the families of codes.
    Families {},
    /// Describes a code and its cells.
    Code {
        /// The code's spec.
        code: String,
    },
    /// Tells whether and how the wanted cells of a question are computed.
    Plan {
        /// The code's spec.
        code: String,
        /// The question.
        #[serde(flatten)]
        question: LossQuestion,
    },
    /// Tries losses of a number of nodes.
    Survey {
        /// The code's spec.
        code: String,
        /// The losses to try.
        #[serde(flatten)]
        survey: LossSurvey,
    },
    /// Reads a schedule from text, and counts its operations.
    Schedule {
        /// The text.
        text: String,
    },
    /// Makes a codec.
    Open {
        /// The code's spec.
        code: String,
        /// Bytes of a packet.
        packet: Option<usize>,
    },
    /// Drops a codec.
    Close {
        /// The codec's number.
        codec: u32,
    },
    /// Cuts an object, which is the only shard of the message, into data shards.
    Split {
        /// The codec's number.
        codec: u32,
    },
    /// Joins an object from data shards.
    Join {
        /// The codec's number.
        codec: u32,
        /// Bytes of the object.
        bytes: usize,
    },
    /// Computes parity.
    Encode {
        /// The codec's number.
        codec: u32,
    },
    /// Computes the shards that are absent.
    Reconstruct {
        /// The codec's number.
        codec: u32,
    },
    /// Compares parity with data.
    Verify {
        /// The codec's number.
        codec: u32,
    },
}

impl CallRequest {
    /// Answers the request. `message` is the message that contains it.
    ///
    /// # Errors
    /// If the library refuses it.
    pub(crate) fn answer(
        self,
        kept: &mut KeptCodecs,
        message: &Message<'_>,
    ) -> Result<Message<'static>> {
        let json = match self {
            Self::Families {} => families(),
            Self::Code { code } => value(&facts::CodeFacts::of(&*kept.code(&code)?))?,
            Self::Plan { code, question } => {
                value(&loss::LossAnswer::of(&*kept.code(&code)?, &question)?)?
            }
            Self::Survey { code, survey } => {
                value(&loss::SurveyAnswer::of(&*kept.code(&code)?, survey)?)?
            }
            Self::Schedule { text } => value(&loss::ScheduleFacts::of(&text.parse::<Schedule>()?))?,
            Self::Open { code, packet } => {
                let code = kept.code(&code)?;
                value(&kept.codecs().open((*code).clone(), packet)?)?
            }
            Self::Close { codec } => kept.codecs().close(codec),
            Self::Split { codec } => {
                return kept.codecs().get(codec)?.split(&message.whole_shards()?);
            }
            Self::Join { codec, bytes } => {
                return kept.codecs().get(codec)?.join(&message.shards, bytes);
            }
            Self::Encode { codec } => {
                return kept.codecs().get(codec)?.encode(&message.whole_shards()?);
            }
            Self::Reconstruct { codec } => {
                return kept.codecs().get(codec)?.reconstruct(&message.shards);
            }
            Self::Verify { codec } => kept.codecs().get(codec)?.verify(&message.whole_shards()?)?,
        };
        Ok(Message::of(json))
    }
}

fn families() -> Value {
    let family = |family: &paritas::Family| {
        json!({
            "name": family.name,
            "summary": family.summary,
            "limits": family.limits,
            "example": family.example,
        })
    };
    json!({ "families": FAMILIES.iter().map(family).collect::<Vec<_>>() })
}

fn value(answer: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(answer)
        .map_err(|error| Refusal::request(format!("the answer is no JSON: {error}")))
}
