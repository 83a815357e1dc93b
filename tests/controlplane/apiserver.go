package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// apiServer is a kube-apiserver that runs in this process.
type apiServer struct {
	url  string
	done <-chan error // gets one value when it has ended
}

// startAPIServer starts kube-apiserver with RBAC and more flags on 127.0.0.1:port (0: a free one). It is not ready yet when this returns.
//
// Its function Run is used rather than the cobra command, which would install its own signal handler.
func startAPIServer(ctx context.Context, pki *pki, etcdURL string, port int, more []string) (*apiServer, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	port = listener.Addr().(*net.TCPAddr).Port
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	server := options.NewServerRunOptions()
	for _, group := range server.Flags().FlagSets {
		flags.AddFlagSet(group)
	}
	if err := flags.Parse(append(apiServerFlags(pki, etcdURL, port), more...)); err != nil {
		return nil, err
	}
	server.SecureServing.Listener = listener
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := complete(ctx, server)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	done := make(chan error, 1)
	go func() { done <- serve(ctx, completed) }()
	return &apiServer{url: fmt.Sprintf("https://127.0.0.1:%d", port), done: done}, nil
}

// apiServerFlags is the command line of kube-apiserver. Feature gates and API groups stay at their defaults: that is what
// clusters run, and switching groups off saves little.
func apiServerFlags(pki *pki, etcdURL string, port int) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // refuses loopback addresses otherwise
		"--tls-cert-file=" + pki.path(serverCert),
		"--tls-private-key-file=" + pki.path(serverKey),
		"--client-ca-file=" + pki.path(caCert),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki.path(serviceAccountKey),
		"--service-account-signing-key-file=" + pki.path(serviceAccountKey),
		"--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112",
		"--allow-privileged=true",
	}
}

// auditPolicy records who asked for what and when, but no bodies, which would have secrets in them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
`

// auditFlags writes the policy into dir and is the part of the command line that has all requests recorded in file, each stage before
// the request goes on.
func auditFlags(dir, file string) ([]string, error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + file,
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=1000",
	}, nil
}

// waitReady returns when /readyz says ok.
func (s *apiServer) waitReady(ctx context.Context, pki *pki) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pki.pem[caCert])
	admin, err := tls.X509KeyPair(pki.pem[adminCert], pki.pem[adminKey])
	if err != nil {
		return err
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Timeout: 2 * time.Second, Transport: transport}
	limit := time.After(2 * time.Minute)
	for {
		if answer, err := client.Get(s.url + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-s.done:
			return fmt.Errorf("ended before it was ready: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return errors.New("not ready after 120 s")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
