package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd starts a cluster of one member on free ports and returns when it serves.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, error) {
	// Port 0 everywhere: the recorded addresses then stay the same over restarts, and no port can be taken in between.
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Name = "controlplane"
	config.Dir = dir
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// Test data outlives this process in the page cache, which is enough; a sync for each write would dominate the tests.
	config.UnsafeNoFsync = true
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(time.Minute):
		err = errors.New("not ready after 60 s")
	}
	etcd.Close()
	return nil, err
}

// clientURL is where etcd listens for the API server.
func clientURL(etcd *embed.Etcd) string {
	return "http://" + etcd.Clients[0].Addr().String()
}
