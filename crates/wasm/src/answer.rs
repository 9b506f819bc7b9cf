//! From a message to its answer.

use crate::kept::KeptCodecs;
use crate::message::Message;
use crate::refusal::Refusal;
use crate::request::CallRequest;

/// Answers a message. An error is an answer too: `{"error": {"kind": …, "message": …}}`.
pub fn answer_to(kept: &mut KeptCodecs, message: &[u8]) -> Vec<u8> {
    let answer = Message::read(message).and_then(|message| {
        let request: CallRequest = serde_json::from_value(message.json.clone())
            .map_err(|error| Refusal::request(format!("this is no request: {error}")))?;
        request.answer(kept, &message)
    });
    answer.unwrap_or_else(|error| Message::of(error.value())).write()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ask(kept: &mut KeptCodecs, request: &Value, shards: &[u8]) -> (Value, Vec<u8>) {
        let text = request.to_string();
        let length = (text.len() as u32).to_le_bytes();
        let answer = answer_to(kept, &[&length[..], text.as_bytes(), shards].concat());
        let (length, rest) = answer.split_first_chunk::<4>().unwrap();
        let (text, shards) = rest.split_at(u32::from_le_bytes(*length) as usize);
        (serde_json::from_slice(text).unwrap(), shards.to_vec())
    }

    #[test]
    fn shards_are_encoded_and_reconstructed() {
        let kept = &mut KeptCodecs::default();
        let (opened, _) = ask(kept, &json!({"do": "open", "code": "2+1"}), &[]);
        let codec = &opened["codec"];
        let encode = json!({"do": "encode", "codec": codec, "shards": [2, 2]});
        assert_eq!(ask(kept, &encode, &[1, 2, 4, 8]).1, [5, 10]);
        let request = json!({"do": "reconstruct", "codec": codec, "shards": [2, null, 2]});
        let (answer, made) = ask(kept, &request, &[1, 2, 5, 10]);
        assert_eq!((answer["shards"].clone(), made), (json!([null, 2, null]), vec![4, 8]));
    }

    /// Messages that are cut off or that are not requests are refused, with a message.
    #[test]
    fn what_cannot_be_read_is_refused() {
        let kept = &mut KeptCodecs::default();
        let error = |answer: Value| answer["error"]["message"].as_str().unwrap().to_owned();
        for cut in [&[][..], &[1, 0, 0], &[9, 0, 0, 0, b'{'], &[255; 8]] {
            let answer = answer_to(kept, cut);
            assert!(String::from_utf8_lossy(&answer[4..]).contains("ends before"), "{cut:?}");
        }
        let (answer, _) = ask(kept, &json!({"do": "dance"}), &[]);
        assert!(error(answer).contains("this is no request"));
        let (answer, _) = ask(kept, &json!({"do": "split", "codec": 7, "shards": [1]}), &[1]);
        assert_eq!(error(answer), "the codec is closed");
        let (answer, _) = ask(kept, &json!({"do": "split", "codec": 7, "shards": [9]}), &[1]);
        assert!(error(answer).contains("ends before"));
    }
}
