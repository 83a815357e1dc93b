{{/* Name of everything that belongs to this release. */}}
{{- define "cloudwit.name" -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* What Pods are selected by: a Deployment's selector can never be changed, so nothing may be in it that another version has otherwise. */}}
{{- define "cloudwit.selector" -}}
app.kubernetes.io/name: cloudwit
app.kubernetes.io/instance: {{ include "cloudwit.name" . }}
{{- end }}

{{- define "cloudwit.labels" -}}
{{ include "cloudwit.selector" . }}
app.kubernetes.io/component: cloud-controller-manager
{{ include "cloudwit.origin" . }}
{{- end }}

{{/* Where an object comes from. */}}
{{- define "cloudwit.origin" -}}
app.kubernetes.io/part-of: cloudwit
app.kubernetes.io/managed-by: {{ .Values.managedBy | default .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
{{- end }}

{{- define "cloudwit.nodeSelector" -}}
app.kubernetes.io/name: cloudwit-csi-node
app.kubernetes.io/instance: {{ include "cloudwit.name" . }}
{{- end }}

{{- define "cloudwit.nodeLabels" -}}
{{ include "cloudwit.nodeSelector" . }}
app.kubernetes.io/component: csi-node
{{ include "cloudwit.origin" . }}
{{- end }}

{{- define "cloudwit.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "cloudwit.configuration" -}}
{{ .Values.existingConfiguration | default (printf "%s-config" (include "cloudwit.name" .)) }}
{{- end }}

{{- define "cloudwit.components" -}}
{{ .Values.existingComponents | default (printf "%s-providers" (include "cloudwit.name" .)) }}
{{- end }}

{{- define "cloudwit.secret" -}}
{{ .Values.existingSecret | default (printf "%s-secrets" (include "cloudwit.name" .)) }}
{{- end }}

{{- define "cloudwit.webhookSecret" -}}
{{ .Values.webhook.existingSecret | default (printf "%s-webhook" (include "cloudwit.name" .)) }}
{{- end }}

{{/* What a running process does not follow: which providers there are, and the routing. Its change starts the Pods anew. */}}
{{- define "cloudwit.fixed" -}}
{{- $names := list }}
{{- range .Values.configuration.providers }}{{ $names = append $names .name }}{{ end }}
{{- dict "names" $names "routing" (.Values.configuration.routing | default dict) | toJson | sha256sum }}
{{- end }}

{{/* The memory limit that follows from the settings; the same formula as in runtime/manager/src/process/memory.rs. */}}
{{- define "cloudwit.memory" -}}
{{- $guests := 0 }}
{{- $rest := 0 }}
{{- range .Values.configuration.providers }}
{{- $limits := .limits | default dict }}
{{- $state := (.grants | default dict).state | default dict }}
{{- $guests = add $guests (mul 2 (int64 ($limits.memoryBytes | default 67108864))) }}
{{- $rest = add $rest (int64 ($limits.bufferedBytes | default 33554432)) (int64 ($limits.answerBytes | default 16777216)) (int64 ($state.maxBytes | default 1048576)) }}
{{- end }}
{{- with .Values.configuration.guestMemoryBytes }}
{{- $guests = int64 . }}
{{- end }}
{{- printf "%dMi" (div (add 201326592 $guests $rest 1048575) 1048576) }}
{{- end }}

{{/* Resource requests of the container. Its memory limit is computed where the configuration is known and the values have none. */}}
{{- define "cloudwit.resources" -}}
{{- $resources := deepCopy .Values.resources }}
{{- $limits := $resources.limits | default dict }}
{{- if and .Values.configuration (not (hasKey $limits "memory")) }}
{{- $resources = set $resources "limits" (set $limits "memory" (include "cloudwit.memory" .)) }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{/* One message for each thing that is said twice or not at all. */}}
{{- define "cloudwit.check" -}}
{{- if and .Values.configuration .Values.existingConfiguration }}
{{- fail "configuration and existingConfiguration both say what the providers are; give one of them" }}
{{- end }}
{{- if not (or .Values.configuration .Values.existingConfiguration) }}
{{- fail "configuration says nothing: name the providers there (docs/reference/configuration.md), or give existingConfiguration, a ConfigMap with the key cloudwit.yaml" }}
{{- end }}
{{- if and .Values.components .Values.existingComponents }}
{{- fail "components and existingComponents both bring components; give one of them" }}
{{- end }}
{{- with .Values.webhook }}
{{- if and .enabled (not .issuer.name) (not (and .existingSecret .caBundle)) }}
{{- fail "webhook.enabled needs a certificate that the API server trusts: webhook.issuer.name (cert-manager), or webhook.existingSecret with webhook.caBundle" }}
{{- end }}
{{- if and .issuer.name (or .existingSecret .caBundle) }}
{{- fail "webhook.issuer.name has cert-manager fill the Secret and the authorities; leave webhook.existingSecret and webhook.caBundle empty" }}
{{- end }}
{{- end }}
{{- if and .Values.secrets .Values.existingSecret }}
{{- fail "secrets and existingSecret both bring secrets; give one of them" }}
{{- end }}
{{- end }}

{{/* Where the API server is, if not at its Service. */}}
{{- define "cloudwit.apiServer" -}}
{{- with .Values.apiServer.host }}
- name: KUBERNETES_SERVICE_HOST
  value: {{ . | quote }}
{{- end }}
{{- with .Values.apiServer.port }}
- name: KUBERNETES_SERVICE_PORT
  value: {{ . | quote }}
{{- end }}
{{- end }}
