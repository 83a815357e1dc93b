//! Upstream's help texts of metrics, and its counters without `_total`.

/// Counters that OpenMetrics has no type for.
pub const COUNTERS_WITHOUT_TOTAL: [&str; 2] = ["authenticated_user_requests", "authentication_attempts"];

/// Names as in the text format of Prometheus.
pub const HELP: &[(&str, &str)] = &[
    (
        "apiserver_delegated_authn_request_duration_seconds",
        "[ALPHA] Request latency in seconds. Broken down by status code.",
    ),
    (
        "apiserver_delegated_authn_request_total",
        "[ALPHA] Number of HTTP requests partitioned by status code.",
    ),
    (
        "apiserver_delegated_authz_request_duration_seconds",
        "[ALPHA] Request latency in seconds. Broken down by status code.",
    ),
    (
        "apiserver_delegated_authz_request_total",
        "[ALPHA] Number of HTTP requests partitioned by status code.",
    ),
    (
        "authenticated_user_requests",
        "[ALPHA] Counter of authenticated requests broken out by username.",
    ),
    ("authentication_attempts", "[ALPHA] Counter of authenticated attempts."),
    (
        "authentication_duration_seconds",
        "[ALPHA] Authentication duration in seconds broken out by result.",
    ),
    ("authentication_token_cache_active_fetch_count", "[ALPHA] "),
    ("authentication_token_cache_fetch_total", "[ALPHA] "),
    ("authentication_token_cache_request_duration_seconds", "[ALPHA] "),
    ("authentication_token_cache_request_total", "[ALPHA] "),
    (
        "authorization_attempts_total",
        "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
    ),
    (
        "authorization_duration_seconds",
        "[ALPHA] Authorization duration in seconds broken out by result.",
    ),
    (
        "cloudprovider_aws_tagging_controller_work_item_errors_total",
        "[ALPHA] any error in dequeueing the work queue and processing workItem",
    ),
    (
        "kubernetes_build_info",
        "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and \
         compiler from which Kubernetes was built, and platform on which it is running.",
    ),
    (
        "leader_election_master_status",
        "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string \
         used to identify the lease. Please make sure to group by name.",
    ),
    (
        "leader_election_slowpath_total",
        "[ALPHA] Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure \
         to group by name.",
    ),
    (
        "node_controller_cloud_provider_taint_removal_delay_seconds",
        "[ALPHA] Number of seconds after node creation when NodeController removed the cloud-provider taint of a single node.",
    ),
    (
        "node_controller_initial_node_sync_delay_seconds",
        "[ALPHA] Number of seconds after node creation when NodeController finished the initial synchronization of a single node.",
    ),
    (
        "process_cpu_seconds_total",
        "Total user and system CPU time spent in seconds.",
    ),
    ("process_max_fds", "Maximum number of open file descriptors."),
    ("process_open_fds", "Number of open file descriptors."),
    ("process_resident_memory_bytes", "Resident memory size in bytes."),
    (
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
    ),
    ("process_virtual_memory_bytes", "Virtual memory size in bytes."),
    (
        "process_virtual_memory_max_bytes",
        "Maximum amount of virtual memory available in bytes.",
    ),
    (
        "rest_client_rate_limiter_duration_seconds",
        "[ALPHA] Client side rate limiter latency in seconds. Broken down by verb, and host.",
    ),
    (
        "rest_client_request_duration_seconds",
        "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
    ),
    (
        "rest_client_request_size_bytes",
        "[ALPHA] Request size in bytes. Broken down by verb and host.",
    ),
    (
        "rest_client_requests_total",
        "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
    ),
    (
        "rest_client_response_size_bytes",
        "[ALPHA] Response size in bytes. Broken down by verb and host.",
    ),
    (
        "rest_client_transport_cache_entries",
        "[ALPHA] Number of transport entries in the internal cache.",
    ),
    (
        "rest_client_transport_create_calls_total",
        "[ALPHA] Number of calls to get a new transport, partitioned by the result of the operation hit: obtained from the cache, miss: created and \
         added to the cache, miss-gc: recreated and added back to the cache after being garbage collected, uncacheable: created and not cached",
    ),
    (
        "route_controller_route_sync_total",
        "[ALPHA] A metric counting the amount of times routes have been synced with the cloud provider.",
    ),
    (
        "running_managed_controllers",
        "[BETA] Indicates where instances of a controller are currently running",
    ),
    (
        "service_controller_loadbalancer_sync_total",
        "[ALPHA] A metric counting the amount of times any load balancer has been configured, as an effect of service/node changes on the cluster",
    ),
    (
        "service_controller_nodesync_error_total",
        "[ALPHA] A metric counting the amount of times any load balancer has been configured and errored, as an effect of node changes on the \
         cluster",
    ),
    (
        "service_controller_nodesync_latency_seconds",
        "[ALPHA] A metric measuring the latency for nodesync which updates loadbalancer hosts on cluster node updates.",
    ),
    (
        "service_controller_update_loadbalancer_host_latency_seconds",
        "[ALPHA] A metric measuring the latency for updating each load balancer hosts.",
    ),
    (
        "tagging_controller_inital_node_tagging_delay_seconds",
        "[ALPHA] Latency (in seconds) between node creation and its first successful tagging by TaggingController.",
    ),
    (
        "workqueue_adds_total",
        "[BETA] Total number of adds handled by workqueue",
    ),
    ("workqueue_depth", "[BETA] Current depth of workqueue"),
    (
        "workqueue_longest_running_processor_seconds",
        "[BETA] How many seconds has the longest running processor for workqueue been running.",
    ),
    (
        "workqueue_queue_duration_seconds",
        "[BETA] How long in seconds an item stays in workqueue before being requested.",
    ),
    (
        "workqueue_retries_total",
        "[BETA] Total number of retries handled by workqueue",
    ),
    (
        "workqueue_unfinished_work_seconds",
        "[BETA] How many seconds of work has done that is in progress and hasn't been observed by work_duration. Large values indicate stuck \
         threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
    ),
    (
        "workqueue_work_duration_seconds",
        "[BETA] How long in seconds processing an item from workqueue takes.",
    ),
];
