use super::*;

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// Eight peers with all they may have, which is all there is.
fn full(connections: &Connections) -> Vec<Place> {
    let places = (0..8).flat_map(|peer| (0..CONNECTIONS_OF_A_PEER).map(move |_| address(peer)));
    places.map(|peer| connections.enter(peer).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn idle_unknown_clients_leave_room_for_a_probe() {
    let connections = Connections::default();
    let places = full(&connections);
    assert!(connections.enter(address(0)).is_none(), "it has enough");
    for round in 0..1000 {
        assert!(connections.enter(address(100)).is_some(), "{round}");
    }
    let closed = places.iter().filter(|place| place.close.is_cancelled()).count();
    assert_eq!(closed, 1, "a probe that went gives its place back");
    assert!(connections.table().open.len() <= CONNECTIONS);
}

#[tokio::test(start_paused = true)]
async fn known_and_working_connections_are_spared() {
    let connections = Connections::default();
    let scraper = connections.enter(address(200)).unwrap();
    scraper.set_known();
    let probe = connections.enter(address(201)).unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    let working: Vec<Place> = (0..7)
        .flat_map(|peer| (0..CONNECTIONS_OF_A_PEER).map(move |_| address(peer)))
        .map(|peer| connections.enter(peer).unwrap())
        .collect();
    let requests: Vec<_> = working.iter().map(Place::request).collect();
    let idle: Vec<Place> = (0..62).map(|_| connections.enter(address(7)).unwrap()).collect();
    let _new: Vec<Place> = (0..62).map(|_| connections.enter(address(8)).unwrap()).collect();
    assert!(!scraper.close.is_cancelled() && !probe.close.is_cancelled());
    assert!(working.iter().all(|place| !place.close.is_cancelled()));
    assert!(
        idle.iter().any(|place| place.close.is_cancelled()),
        "the peers that have most give room"
    );
    drop(requests);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_requests_ends() {
    let connections = Connections::default();
    for (known, limit) in [(false, UNKNOWN_IDLE), (true, KNOWN_IDLE)] {
        let place = connections.enter(address(1)).unwrap();
        let request = place.request();
        if known {
            place.set_known();
        }
        let busy = tokio::time::timeout(limit * 3, place.idle_for_long()).await;
        assert!(busy.is_err(), "a request is under way");
        drop(request);
        let since = Instant::now();
        place.idle_for_long().await;
        assert!(since.elapsed() >= limit && since.elapsed() < limit + Duration::from_secs(1));
    }
}

#[test]
fn an_ipv6_network_is_one_peer() {
    let of = |text: &str| peer_of(text.parse().unwrap());
    assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2::1"));
    assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
}
