package main

import (
	"errors"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdCommand runs a cluster of one member on loopback until SIGTERM or SIGINT.
func etcdCommand() *cobra.Command {
	var dir string
	var port uint16
	command := &cobra.Command{
		Use:           "etcd --dir DIR --port PORT",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return serveEtcd(dir, port) },
	}
	command.Flags().StringVar(&dir, "dir", "", "folder for the data; made if missing")
	command.Flags().Uint16Var(&port, "port", 2379, "port on 127.0.0.1 for clients")
	return command
}

func serveEtcd(dir string, port uint16) error {
	if dir == "" {
		return errors.New("--dir is missing: name a folder for the data")
	}
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	clients := []url.URL{{Scheme: "http", Host: "127.0.0.1:" + strconv.Itoa(int(port))}}
	config := embed.NewConfig()
	config.Name = "cluster"
	config.Dir = dir
	config.LogLevel = "error"
	config.ListenClientUrls, config.AdvertiseClientUrls = clients, clients
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// The data is thrown away with the cluster; a sync for each write would only load the disk.
	config.UnsafeNoFsync = true
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return err
	case <-time.After(time.Minute):
		return errors.New("etcd is not ready after 60 s")
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-etcd.Err():
		return err
	case <-ended:
		return nil
	}
}
