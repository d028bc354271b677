//! Several requests at once: one message to each node.
//!
//! A hundred small messages would cost Redis as many reads and writes of its connection. Some requests are not
//! answered, because their node was not connected or they failed. Each of these is sent again alone, with the failure
//! handling of `client`. Not here: one request.

use super::RankingError;
use super::client::{Answers, Request, Shared};
use super::node::Node;
use super::reply;
use futures_util::future::join_all;
use redis::Value;
use std::sync::Arc;

impl Shared {
    /// Sends all requests at once. Each has its own answer.
    pub(super) async fn all(&self, requests: &[Request]) -> Answers {
        match requests {
            [one] => vec![self.call(one).await],
            all => {
                if let Err(refused) = self.ownership().check() {
                    return all.iter().map(|_| Err(refused.clone())).collect();
                }
                let mut answers: Vec<Option<_>> = all.iter().map(|_| None).collect();
                let by_node = self.by_node(all);
                let pipelines = by_node.iter().map(|(node, which)| self.pipeline(node, all, which));
                for ((_, which), of_node) in by_node.iter().zip(join_all(pipelines).await) {
                    for (at, answer) in which.iter().zip(of_node) {
                        answers[*at] = answer;
                    }
                }
                let again = all.iter().zip(answers).map(async |(one, answer)| match answer {
                    Some(answer) => answer,
                    None => self.call(one).await,
                });
                join_all(again).await
            }
        }
    }

    /// The requests by node, without those whose node is unknown.
    fn by_node(&self, requests: &[Request]) -> Vec<(Arc<Node>, Vec<usize>)> {
        let map = self.map();
        let mut by_node: Vec<(Arc<Node>, Vec<usize>)> = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let Some(node) = map.node(request.slot) else { continue };
            match by_node.iter_mut().find(|(one, _)| Arc::ptr_eq(one, &node)) {
                Some((_, which)) => which.push(at),
                None => by_node.push((node, vec![at])),
            }
        }
        by_node
    }

    /// Sends some of the requests in one message, if the node is connected. Returns the answer of each, or `None` if it
    /// should be sent again alone.
    async fn pipeline(
        &self,
        node: &Arc<Node>,
        requests: &[Request],
        which: &[usize],
    ) -> Vec<Option<Result<Value, RankingError>>> {
        let Some(live) = node.present() else { return vec![None; which.len()] };
        let commands = which.iter().map(|at| &requests[*at]);
        match live.run_all(commands).await {
            // A request that failed is sent again alone.
            Ok(values) => values.into_iter().map(|value| value.ok().map(reply::status)).collect(),
            Err(failure) => {
                let repaired = self.repair(node, &live, failure, requests[which[0]].slot);
                let failed = self.in_time(repaired).await.and_then(|repaired| repaired).err();
                vec![failed.map(Err); which.len()]
            }
        }
    }
}
