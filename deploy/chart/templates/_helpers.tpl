{{/* Name of everything that belongs to this release. */}}
{{- define "cloudwit.name" -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "cloudwit.selector" -}}
app.kubernetes.io/name: cloudwit
app.kubernetes.io/instance: {{ include "cloudwit.name" . }}
{{- end }}

{{- define "cloudwit.labels" -}}
{{ include "cloudwit.selector" . }}
app.kubernetes.io/component: cloud-controller-manager
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

{{/* What a running process does not follow: which providers there are, and the routing. Its change starts the Pods anew. */}}
{{- define "cloudwit.fixed" -}}
{{- $names := list }}
{{- range .Values.configuration.providers }}{{ $names = append $names .name }}{{ end }}
{{- dict "names" $names "routing" (.Values.configuration.routing | default dict) | toJson | sha256sum }}
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
{{- if and .Values.secrets .Values.existingSecret }}
{{- fail "secrets and existingSecret both bring secrets; give one of them" }}
{{- end }}
{{- end }}
