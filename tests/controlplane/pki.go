package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files of the PKI: one authority that signs the server's and the administrator's certificate, and the key of service accounts.
const (
	caCert            = "ca.crt"
	serverCert        = "apiserver.crt"
	serverKey         = "apiserver.key"
	adminCert         = "admin.crt"
	adminKey          = "admin.key"
	serviceAccountKey = "service-account.key"
)

var pkiFiles = []string{caCert, serverCert, serverKey, adminCert, adminKey, serviceAccountKey}

// pki is a throw-away PKI: the content of its files by name. The key of the authority is forgotten once all is signed.
type pki struct {
	dir string
	pem map[string][]byte
}

// loadOrCreatePKI reads the PKI in dir or makes one there. A restart keeps it, so that kubeconfigs and tokens stay valid.
func loadOrCreatePKI(dir string) (*pki, error) {
	p := &pki{dir: dir, pem: map[string][]byte{}}
	var missing error
	for _, name := range pkiFiles {
		content, err := os.ReadFile(p.path(name))
		missing = errors.Join(missing, err)
		p.pem[name] = content
	}
	if missing == nil {
		return p, nil
	}
	if !errors.Is(missing, fs.ErrNotExist) {
		return nil, missing
	}
	if err := p.create(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range p.pem {
		if err := os.WriteFile(p.path(name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// create makes all keys and certificates in memory.
func (p *pki) create() error {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authority := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "controlplane-ca"},
		IsCA:     true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if p.pem[caCert], err = certificate(authority, authority, authorityKey, authorityKey); err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	admin := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, leaf := range []struct {
		template  *x509.Certificate
		cert, key string
	}{{server, serverCert, serverKey}, {admin, adminCert, adminKey}} {
		key, err := p.newKey(leaf.key)
		if err != nil {
			return err
		}
		leaf.template.KeyUsage = x509.KeyUsageDigitalSignature
		if p.pem[leaf.cert], err = certificate(leaf.template, authority, key, authorityKey); err != nil {
			return err
		}
	}
	_, err = p.newKey(serviceAccountKey)
	return err
}

// newKey makes a private key and keeps it under that name.
func (p *pki) newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	p.pem[name] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return key, nil
}

// certificate signs a certificate for key, valid for a year, as PEM.
func certificate(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// writeKubeconfig writes a kubeconfig of the administrator.
func (p *pki) writeKubeconfig(path, server string) error {
	data := func(name string) string { return base64.StdEncoding.EncodeToString(p.pem[name]) }
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: controlplane
clusters:
- name: controlplane
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: controlplane
  context: {cluster: controlplane, user: admin}
users:
- name: admin
  user:
    client-certificate-data: %s
    client-key-data: %s
`, server, data(caCert), data(adminCert), data(adminKey))
	return os.WriteFile(path, []byte(text), 0o600)
}
