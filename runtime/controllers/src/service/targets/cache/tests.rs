//! How many Nodes are walked over, and that no reader gets a stale list.

use serde_json::json;

use super::*;

fn node(index: usize, version: usize, ready: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": format!("n{index}"), "uid": format!("n{index}"), "resourceVersion": version.to_string() },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    }))
    .unwrap()
}

/// A cache of Nodes that tells of its changes, with so many Nodes in it.
fn cluster(count: usize) -> (Arc<Cache<Node>>, Arc<TargetCache>) {
    let cloud = crate::testing::FakeCloud::new(Ok(crate::testing::running("sim://x")));
    let scope = crate::testing::only(cloud);
    let (nodes, cache) = (Arc::<Cache<Node>>::default(), Arc::new(TargetCache::new(scope)));
    let listening = cache.clone();
    nodes.listen(move |_, change| listening.changed(&change));
    nodes.fill((0..count).map(|index| node(index, 1, "True")).collect());
    (nodes, cache)
}

#[test]
fn node_changes_walk_nothing_until_requested() {
    let (_, cache) = cluster(5000);
    assert_eq!(cache.walked(), 0);
    assert_eq!(cache.last_pass(), DatedSet::default(), "there was none");
}

#[test]
fn two_hundred_load_balancers_share_one_walk_over_the_nodes() {
    let (nodes, cache) = cluster(5000);
    let first = cache.now(&nodes);
    assert_eq!((first.list.len(), first.set.nodes.len()), (5000, 5000));
    for _ in 1..200 {
        let given = cache.now(&nodes);
        assert!(Arc::ptr_eq(&given.list, &first.list));
        assert_eq!(given.set.nodes, first.set.nodes);
        assert_eq!(cache.pass(&nodes), first.set.nodes);
    }
    assert_eq!(cache.walked(), 5000);
}

#[test]
fn changed_node_list_is_current_and_old_one_kept_until_next() {
    let (nodes, cache) = cluster(3);
    cache.pass(&nodes);
    let old = cache.now(&nodes);
    assert_eq!(old.set, cache.last_pass());
    nodes.observe(node(0, 2, "False"));
    let news = cache.now(&nodes);
    assert_eq!((old.list[0].ready, news.list[0].ready), (true, false));
    assert_eq!(old.set, news.set, "readiness is no matter of the set");

    nodes.fill((0..2).map(|index| node(index, 3, "True")).collect());
    let newer = cache.now(&nodes);
    assert_eq!((newer.list.len(), newer.set.pass), (2, 1));
    assert_eq!(cache.last_pass(), old.set, "a question is no pass");
    assert!(
        !newer.set.is_behind(&cache.last_pass()),
        "it has other nodes, but newer ones"
    );
    assert_eq!(cache.pass(&nodes).len(), 2);
    assert!(old.set.is_behind(&cache.last_pass()) && !newer.set.is_behind(&cache.last_pass()));
}

#[test]
fn a_heartbeat_of_a_node_leaves_the_list_as_it_is() {
    let (nodes, cache) = cluster(3);
    let old = cache.now(&nodes);
    nodes.observe(node(0, 2, "True"));
    assert!(Arc::ptr_eq(&cache.now(&nodes).list, &old.list));
    assert_eq!(cache.walked(), 3);
}

#[test]
fn dropped_list_frees_memory_and_is_rebuilt_on_demand() {
    let (nodes, cache) = cluster(3);
    let list = Arc::downgrade(&cache.now(&nodes).list);
    assert!(list.upgrade().is_some());
    cache.forget_list();
    assert!(list.upgrade().is_none());
    assert_eq!(cache.now(&nodes).list.len(), 3);
}
