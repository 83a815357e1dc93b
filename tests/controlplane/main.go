// Command controlplane runs etcd and kube-apiserver in one process, on loopback, for tests and the sandbox.
//
//	controlplane --dir DIR [--port 0] [--audit-log FILE] [--throwaway]
//
// Once the API server is ready it prints two lines on standard output:
//
//	KUBECONFIG=DIR/admin.kubeconfig
//	READY
//
// It ends on SIGTERM or SIGINT, when its standard input closes, and when its parent is gone, so that a killed test leaves no API
// server behind. Started again on the same --dir and --port it serves the same data under the same kubeconfig.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// How long a graceful end may take; open watches would hold the API server for a minute otherwise.
const shutdownLimit = 10 * time.Second

func main() {
	dir := flag.String("dir", "", "folder for data, certificates and the kubeconfig; made if missing")
	port := flag.Int("port", 0, "port of the API server on 127.0.0.1; 0 takes a free one")
	auditLog := flag.String("audit-log", "", "file that gets a line for each stage of each request, as kube-apiserver writes them")
	throwaway := flag.Bool("throwaway", false, "end at once and remove --dir when standard input closes or the parent is gone")
	flag.Parse()
	if *dir == "" || flag.NArg() != 0 {
		fmt.Fprintln(os.Stderr, "usage: controlplane --dir DIR [--port PORT] [--audit-log FILE] [--throwaway]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		waitUntilAlone()
		if *throwaway {
			os.RemoveAll(*dir)
			os.Exit(0)
		}
		cancel()
	}()
	err := run(ctx, *dir, *port, *auditLog)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, dir string, port int, auditLog string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	pki, err := loadOrCreatePKI(filepath.Join(dir, "pki"))
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	etcd, err := startEtcd(ctx, filepath.Join(dir, "etcd"))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer etcd.Close()
	var audit []string
	if auditLog != "" {
		if audit, err = auditFlags(dir, auditLog); err != nil {
			return fmt.Errorf("audit policy: %w", err)
		}
	}
	server, err := startAPIServer(ctx, pki, clientURL(etcd), port, audit)
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	kubeconfig := filepath.Join(dir, "admin.kubeconfig")
	if err := pki.writeKubeconfig(kubeconfig, server.url); err != nil {
		return err
	}
	if err := server.waitReady(ctx, pki); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	fmt.Printf("KUBECONFIG=%s\nREADY\n", kubeconfig)
	select {
	case err := <-server.done:
		return fmt.Errorf("kube-apiserver ended: %w", err)
	case err := <-etcd.Err():
		return fmt.Errorf("etcd ended: %w", err)
	case <-ctx.Done():
	}
	select {
	case <-server.done:
	case <-time.After(shutdownLimit):
	}
	return nil
}

// waitUntilAlone returns when standard input is closed or the parent has died.
//
// PR_SET_PDEATHSIG is not used: it fires when the parent's *thread* that started us ends, and Rust's test harness gives each test
// a thread of its own.
func waitUntilAlone() {
	closed := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(closed)
	}()
	parent := os.Getppid()
	for os.Getppid() == parent {
		select {
		case <-closed:
			return
		case <-time.After(time.Second):
		}
	}
}
