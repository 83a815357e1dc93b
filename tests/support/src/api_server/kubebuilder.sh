# Runs etcd and kube-apiserver for kubebuilder.rs. Ends when standard input closes (then the data are removed) or on SIGTERM
# (then they stay). Arguments: folder of the binaries, folder of the data, port of etcd, port of the API server, token, and the file of
# the audit log, if there shall be one.
set -u
assets=$1 dir=$2 etcd_port=$3 port=$4 token=$5
etcd_url=http://127.0.0.1:$etcd_port
# Peers are never spoken to: any port does.
"$assets/etcd" --data-dir="$dir/etcd" --unsafe-no-fsync --log-level=error \
  --listen-client-urls="$etcd_url" --advertise-client-urls="$etcd_url" --listen-peer-urls=http://127.0.0.1:0 >&2 </dev/null &
etcd=$!

echo "$token,admin,admin,system:masters" >"$dir/tokens.csv"
audit=()
if [ -n "${6-}" ]; then
  echo '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}' >"$dir/audit-policy.yaml"
  audit=(--audit-policy-file="$dir/audit-policy.yaml" --audit-log-path="$6" --audit-log-mode=blocking --audit-log-maxsize=1000)
fi
# Without a certificate the API server makes one for itself. Its key also signs the tokens of service accounts.
"$assets/kube-apiserver" --etcd-servers="$etcd_url" --bind-address=127.0.0.1 --secure-port="$port" \
  --advertise-address=127.0.0.1 --endpoint-reconciler-type=none --cert-dir="$dir/pki" --token-auth-file="$dir/tokens.csv" \
  --authorization-mode=RBAC --service-account-issuer=https://kubernetes.default.svc \
  --service-account-key-file="$dir/pki/apiserver.key" --service-account-signing-key-file="$dir/pki/apiserver.key" \
  --service-cluster-ip-range=10.96.0.0/16 --allow-privileged=true "${audit[@]}" >&2 </dev/null &
apiserver=$!

end() {
  kill "$apiserver" && wait "$apiserver"
  kill "$etcd" && wait "$etcd"
} >&2
trap 'end; exit 0' TERM

until [ -s "$dir/pki/apiserver.crt" ]; do
  kill -0 "$apiserver" || { end; exit 1; }
  sleep 0.05
done
cat >"$dir/admin.kubeconfig" <<KUBECONFIG
apiVersion: v1
kind: Config
current-context: kubebuilder
clusters:
- name: kubebuilder
  cluster: {server: "https://127.0.0.1:$port", certificate-authority: "$dir/pki/apiserver.crt"}
contexts:
- name: kubebuilder
  context: {cluster: kubebuilder, user: admin}
users:
- name: admin
  user: {token: "$token"}
KUBECONFIG
echo "KUBECONFIG=$dir/admin.kubeconfig"
echo READY

# In the background, since bash runs a trap only between commands; from a copy, since background jobs lose standard input.
exec 3<&0
cat <&3 >/dev/null &
wait $!
kill -KILL "$apiserver" "$etcd"
rm -rf "$dir"
