//! Receiving objects of LT codes: all nodes are read at once, until the received blocks suffice.
//!
//! Any blocks serve, a few more than k of them. So each node is asked for its own blocks one after
//! the other, at its own speed, and nobody waits for a slow one (Xia and Chien, RobuSTore). Which
//! blocks suffice shows as they come; then the requests under way are cancelled. Only a few
//! requests are under way to a node at a time, because requests that are still under way at the end
//! are wasted.
//!
//! The receiver asks only for the number of blocks that it hopes will suffice. If a node takes
//! longer than nodes usually do, the receiver no longer counts on its blocks, nor on the next ones
//! that it asks this node for, until the node answers in time.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::{FuturesUnordered, Stream, StreamExt, try_unfold};
use paritas::lt::{Decoder, Method};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::segment::Segment;
use tokio::time::Instant;

use crate::transfer::Pace;
use crate::transfer::receive::{Pieces, Receiver, Wanted, cut, data_of, kept, run_blocking};

/// Number of requests under way to one node.
const DEPTH: usize = 2;

/// Bytes of one request, if lanes are not longer.
const REQUEST: usize = 256 << 10;

/// The number of blocks that are asked for at first, in hundredths of k.
const FIRST_HUNDREDTHS: usize = 103;

/// Reads the segments of one object side by side.
struct SegmentReader {
    receiver: Arc<Receiver>,
    /// The segments still to be begun.
    left: Range<u64>,
    /// The segments that are begun and do not have enough blocks, in order.
    open: VecDeque<Open>,
    decoding: FuturesUnordered<BoxFuture<'static, Result<(u64, Pieces)>>>,
    /// The segments that are decoded and not yet handed out.
    done: BTreeMap<u64, Pieces>,
    /// The segment to be handed out next.
    first: u64,
    requests: FuturesUnordered<BoxFuture<'static, Option<Arrived>>>,
    /// What is under way, by part.
    under_way: Vec<Vec<LaneRequest>>,
    /// How long all nodes usually take. A node that is unknown or always slower is given no more
    /// time than that.
    usual: Pace,
    /// Most segments in memory.
    room: usize,
}

/// A segment that collects blocks.
struct Open {
    number: u64,
    memory: Segment,
    solver: Decoder,
    /// The next lane to ask for, by part.
    next: Vec<usize>,
    /// Number of blocks that are counted on: blocks that came, and blocks that are under way and
    /// not late.
    hoped: usize,
    /// Number of blocks to hope for.
    target: usize,
}

/// Adjacent lanes of a segment that are under way.
#[derive(Debug)]
struct LaneRequest {
    segment: u64,
    lanes: Range<usize>,
    begun: Instant,
    /// Whether the receiver no longer counts on it.
    is_late: bool,
    abort: AbortHandle,
}

struct Arrived {
    part: usize,
    segment: u64,
    lanes: Range<usize>,
    bytes: Result<Bytes>,
}

/// Returns the wanted bytes of an object of an LT code, in order.
pub(crate) fn bytes(
    receiver: Arc<Receiver>,
    wanted: Wanted,
) -> impl Stream<Item = Result<Pieces>> + Send {
    let left = receiver.segments(&wanted.range);
    try_unfold(SegmentReader::new(receiver, left), move |mut gathering| {
        let wanted = wanted.clone();
        async move {
            let Some((segment, lanes)) = gathering.next().await? else { return Ok(None) };
            let receiver = &gathering.receiver;
            let here = receiver.layout.segment_range(receiver.length, segment);
            let mut pieces = Vec::new();
            cut(&mut pieces, lanes, here.clone(), &wanted.range);
            Ok(Some((kept(wanted, here.start, pieces).await?, gathering)))
        }
    })
}

impl SegmentReader {
    fn new(receiver: Arc<Receiver>, left: Range<u64>) -> Self {
        let room = receiver.settings.memory / receiver.layout.segment_memory().max(1);
        Self {
            first: left.start,
            left,
            open: VecDeque::new(),
            decoding: FuturesUnordered::new(),
            done: BTreeMap::new(),
            requests: FuturesUnordered::new(),
            under_way: receiver.places.iter().map(|_| Vec::new()).collect(),
            room: room.clamp(2, 32),
            usual: Pace::default(),
            receiver,
        }
    }

    /// Returns the next segment in order and its data, or `None` at the end.
    async fn next(&mut self) -> Result<Option<(u64, Pieces)>> {
        loop {
            self.ask()?;
            if let Some(lanes) = self.done.remove(&self.first) {
                self.first += 1;
                return Ok(Some((self.first - 1, lanes)));
            }
            if self.open.is_empty() && self.decoding.is_empty() {
                return Ok(None);
            }
            if self.requests.is_empty() && self.decoding.is_empty() {
                return Err(self.lost());
            }
            let due = self.next_due();
            tokio::select! {
                biased;
                Some(decoded) = self.decoding.next(), if !self.decoding.is_empty() => {
                    let (segment, lanes) = decoded?;
                    self.done.insert(segment, lanes);
                }
                Some(answer) = self.requests.next(), if !self.requests.is_empty() => {
                    answer.map_or(Ok(()), |answer| self.take(answer))?;
                }
                () = tokio::time::sleep_until(due.unwrap_or_else(far)), if due.is_some() => self.give_up_waiting(),
            }
        }
    }

    /// Asks every node that has little to do for more.
    fn ask(&mut self) -> Result<()> {
        for part in 0..self.receiver.places.len() {
            if !self.receiver.is_there(part) {
                continue;
            }
            while self.under_way[part].len() < DEPTH {
                // Others that read from the node may change this at any time.
                let is_late = self.pace(part).is_some_and(Pace::is_unreliable);
                let Some((segment, lanes)) = self.choose(part, is_late)? else { break };
                self.request(part, segment, lanes, is_late);
            }
        }
        Ok(())
    }

    /// Chooses lanes of a part for the next request: of the first open segment that needs more
    /// blocks than are hoped for, or of a new one. They are hoped for unless the request counts as
    /// late from the beginning.
    fn choose(&mut self, part: usize, is_late: bool) -> Result<Option<(u64, Range<usize>)>> {
        let layout = &self.receiver.layout;
        let lanes = layout.lanes(part);
        let count = (REQUEST / layout.lane_bytes(lanes.start).max(1)).max(1);
        let wants = |open: &&mut Open| open.hoped < open.target && open.next[part] < lanes.end;
        if let Some(open) = self.open.iter_mut().find(wants) {
            let first = open.next[part];
            open.next[part] = (first + count).min(lanes.end);
            if !is_late {
                open.hoped += open.next[part] - first;
            }
            return Ok(Some((open.number, first..open.next[part])));
        }
        if self.open.len() + self.decoding.len() + self.done.len() >= self.room
            || self.open.iter().any(|o| o.hoped < o.target)
        {
            return Ok(None);
        }
        let Some(number) = self.left.next() else { return Ok(None) };
        self.open.push_back(Open::new(&self.receiver, number)?);
        self.choose(part, is_late)
    }

    fn request(&mut self, part: usize, segment: u64, lanes: Range<usize>, is_late: bool) {
        let receiver = Arc::clone(&self.receiver);
        let begun = Instant::now();
        let asked = lanes.clone();
        let (answer, abort) = abortable(async move {
            let bytes = receiver.read_lanes(part, segment, asked.clone()).await;
            Arrived { part, segment, lanes: asked, bytes }
        });
        self.requests.push(answer.map(Result::ok).boxed());
        self.under_way[part].push(LaneRequest { segment, lanes, begun, is_late, abort });
    }

    /// Returns how long the node of a part is given for a request. Giving up early gains little,
    /// because other blocks come in the meantime. It has a cost: whatever is asked for instead is
    /// read in vain if the answer comes after all.
    fn patience(&self, part: usize) -> Duration {
        let hedge = &self.receiver.settings.hedge;
        let usual = self.usual.patience(hedge);
        2 * self.pace(part).map_or(usual, |pace| pace.patience(hedge).min(usual))
    }

    /// Returns the pace of the node of a part.
    fn pace(&self, part: usize) -> Option<&Pace> {
        self.receiver.place_of(part).map(|place| &*place.pace)
    }

    /// Notes how long the node of a part took. A node without the part answered, but its time says
    /// nothing about reading.
    fn time(&self, part: usize, request: &LaneRequest, answer: &Result<Bytes>) {
        if answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return;
        }
        let (is_answered, time) = (answer.is_ok(), request.begun.elapsed());
        if is_answered {
            self.usual.answered(time);
        }
        let Some(pace) = self.pace(part) else { return };
        match is_answered && time <= self.patience(part) {
            true => pace.answered(time),
            false if request.is_late => {}
            false => pace.late(),
        }
    }

    /// Takes an answer in. When a segment has enough blocks, it is decoded.
    fn take(&mut self, answer: Arrived) -> Result<()> {
        let Arrived { part, segment, lanes, bytes } = answer;
        let is_it = |request: &LaneRequest| request.segment == segment && request.lanes == lanes;
        let place = self.under_way[part].iter().position(is_it);
        let request = place.map(|place| self.under_way[part].swap_remove(place));
        request.iter().for_each(|request| self.time(part, request, &bytes));
        let was_late = request.is_some_and(|request| request.is_late);
        let Some(open) = self.open.iter_mut().find(|open| open.number == segment) else {
            return Ok(());
        };
        // Late blocks were no longer counted on.
        if was_late {
            open.hoped += lanes.len();
        }
        let bad = match bytes {
            Ok(bytes) => open.memory.accept_lanes(part, lanes.clone(), &bytes),
            Err(error) => {
                self.receiver.note_failure(part, &error);
                lanes.clone().collect()
            }
        };
        if let Some(lane) = bad.first() {
            self.receiver
                .note(part, &format!("lane {lane} of segment {segment} fails its checksum"));
        }
        open.hoped -= bad.len();
        let layout = &self.receiver.layout;
        for block in lanes.filter(|l| !bad.contains(l)).filter_map(|lane| layout.lt_block(lane)) {
            open.solver.push(block)?;
        }
        if open.solver.is_ready() {
            self.decode(segment);
        } else if open.solver.received() >= open.target {
            open.target = open.solver.received() + open.target.div_ceil(100);
        }
        Ok(())
    }

    /// Cancels what is under way for a segment, and decodes it.
    fn decode(&mut self, segment: u64) {
        let Some(place) = self.open.iter().position(|open| open.number == segment) else { return };
        let Some(open) = self.open.remove(place) else { return };
        for requests in &mut self.under_way {
            let (over, rest) = requests.drain(..).partition(|r: &LaneRequest| r.segment == segment);
            *requests = rest;
            Vec::into_iter(over).for_each(|request: LaneRequest| request.abort.abort());
        }
        let receiver = Arc::clone(&self.receiver);
        let bytes = receiver.layout.segment_range(receiver.length, segment);
        let mut memory = open.memory;
        let work = move || {
            memory.make_data()?;
            Ok::<_, Error>(data_of(&receiver.layout, memory, (bytes.end - bytes.start) as usize))
        };
        let decoded = async move { Ok((segment, run_blocking(work).await??)) };
        self.decoding.push(decoded.boxed());
    }

    fn next_due(&self) -> Option<Instant> {
        let due = |(part, requests): (usize, &Vec<LaneRequest>)| {
            let begun = requests.iter().filter(|request| !request.is_late).map(|r| r.begun).min();
            begun.map(|begun| begun + self.patience(part))
        };
        self.under_way.iter().enumerate().filter_map(due).min()
    }

    /// Stops counting on late requests, so that other nodes are asked for more.
    fn give_up_waiting(&mut self) {
        let now = Instant::now();
        for part in 0..self.under_way.len() {
            let patience = self.patience(part);
            let is_due = |r: &&mut LaneRequest| !r.is_late && r.begun + patience <= now;
            for request in self.under_way[part].iter_mut().filter(is_due) {
                request.is_late = true;
                self.receiver.place_of(part).iter().for_each(|place| place.pace.late());
                let open = self.open.iter_mut().find(|open| open.number == request.segment);
                open.into_iter().for_each(|open| open.hoped -= request.lanes.len());
            }
        }
    }

    fn lost(&self) -> Error {
        let Some(open) = self.open.front() else { return self.receiver.lost(&(0..1), &[]) };
        let parts: Vec<usize> =
            (0..self.receiver.places.len()).filter(|&part| self.receiver.is_there(part)).collect();
        self.receiver.lost(&(open.number..open.number + 1), &parts)
    }
}

impl Open {
    fn new(receiver: &Receiver, number: u64) -> Result<Self> {
        let layout = &receiver.layout;
        let mut memory = layout.segment()?;
        memory.begin(number, &layout.extent(receiver.length));
        let graph =
            layout.code().graph().ok_or_else(|| Error::parameters("the code is no LT code"))?;
        let solver = Decoder::new(graph, Method::Inactivation);
        let next = (0..receiver.places.len()).map(|part| layout.lanes(part).start).collect();
        let target = (graph.data() * FIRST_HUNDREDTHS).div_ceil(100) + 2;
        Ok(Self { number, memory, solver, next, hoped: 0, target })
    }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{Memory, layout, place, settings};

    #[tokio::test]
    async fn a_request_is_hoped_for_or_late_whatever_others_note_meanwhile() {
        let layout = layout("lt:k=64,n=128,nodes=8,seed=3", 1024);
        let place = |part: usize| place(Arc::new(Memory::default()), part);
        let places: Vec<_> = (0..8).map(place).collect();
        let pace = Arc::clone(&places[0].pace);
        let places = places.into_iter().map(|place| vec![place]).collect();
        let receiver = Receiver::new(layout, 100_000, places, settings());
        let mut gathering = SegmentReader::new(receiver, 0..1);
        let (segment, lanes) = gathering.choose(0, false).unwrap().unwrap();
        assert_eq!(gathering.open[0].hoped, lanes.len());
        // Another read of the same node finds it late just now.
        pace.late();
        pace.late();
        gathering.request(0, segment, lanes.clone(), false);
        let bytes = Err(Error::parameters("refused"));
        gathering.take(Arrived { part: 0, segment, lanes, bytes }).unwrap();
        assert_eq!(gathering.open[0].hoped, 0);
    }
}
