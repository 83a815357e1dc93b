//! An instance is told who it is by moto's metadata service (IMDSv2).

use cloudwit_test_support::clouds::moto::Moto;
use cloudwit_test_support::programs::cloud_command::cloud_command;
use cloudwit_test_support::scenes::deployment::CloudFiles;

#[tokio::test(flavor = "multi_thread")]
async fn instance_is_located_by_the_metadata_service() {
    let moto = Moto::shared().await;
    let (_, port) = moto.url().rsplit_once(':').unwrap();
    let files = CloudFiles {
        config: format!(
            "[Global]\nRegion = us-east-1\n[Credentials]\nMetadataURL = {}\n",
            moto.url()
        ),
        settings: format!(
            "grants:\n  http:\n    - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [GET, PUT], allowLoopback: true}}\n"
        ),
    };
    let folder = tempfile::tempdir().unwrap();
    let located = cloud_command("aws", &["location"], &[], (&files, folder.path())).await;
    assert_eq!(
        located.unwrap().success(),
        "--hostname-override=moto-instance.ec2.internal --provider-id=aws:///us-east-1a/i-fake \
         --node-labels=topology.kubernetes.io/region=us-east-1,topology.kubernetes.io/zone=us-east-1a\n"
    );
}
