{{- /* A value as TOML has it. JSON is TOML but for objects. */ -}}
{{- define "netstead.toml" -}}
{{- if kindIs "map" . -}}
{ {{- $first := true }}{{ range $key, $value := . }}{{ if not $first }},{{ end }} {{ toJson $key }} = {{ include "netstead.toml" $value }}{{ $first = false }}{{ end }} }
{{- else if kindIs "slice" . -}}
[{{- range $index, $value := . }}{{ if $index }}, {{ end }}{{ include "netstead.toml" $value }}{{ end }}]
{{- else if kindIs "float64" . -}}
{{ if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}

{{- /* What takes effect when a pod starts. The pods are replaced when it changes. */ -}}
{{- define "netstead.startConfig" -}}
{{- $full := include "netstead.fullname" . -}}
{{- $nodes := include "netstead.nodes" . -}}
{{- $replicas := int .Values.replicas -}}
[log]
level = {{ toJson .Values.log.level }}
format = {{ toJson .Values.log.format }}

[store]
type = {{ toJson .Values.store.type }}
{{- if eq .Values.store.type "local" }}
path = "/var/lib/netstead"
{{- else if eq .Values.store.type "raft" }}
path = "/var/lib/netstead/raft"
listen = "{{ .Values.bind }}:5302"
{{- if gt $replicas 1 }}
{{- $peers := list }}
{{- range $number := until $replicas }}
{{- $peers = append $peers (printf "%s-%d.%s.%s.svc:5302" $full $number $nodes $.Release.Namespace) }}
{{- end }}
peers = {{ include "netstead.toml" $peers }}
{{- end }}
secret = { file = "/run/secrets/netstead-raft/{{ .Values.store.raft.secretKey }}" }
{{- else }}
{{- with .Values.store.etcd }}
endpoints = {{ include "netstead.toml" .endpoints }}
prefix = {{ toJson .prefix }}
{{- if .user }}
user = {{ toJson .user }}
password = { file = "/run/secrets/netstead-etcd-password/{{ .passwordSecretKey }}" }
{{- end }}
{{- if .tlsSecretName }}
ca_file = "/run/secrets/netstead-etcd-tls/ca.crt"
{{- if .clientCertificate }}
client_cert = "/run/secrets/netstead-etcd-tls/tls.crt"
client_key = "/run/secrets/netstead-etcd-tls/tls.key"
{{- end }}
{{- end }}
{{- end }}
{{- end }}

[api]
listen = "{{ .Values.bind }}:5301"
{{- $hosts := list $full (printf "%s.%s" $full .Release.Namespace) (printf "%s.%s.svc" $full .Release.Namespace) }}
{{- range $number := until $replicas }}
{{- $hosts = append $hosts (printf "%s-%d.%s.%s.svc" $full $number $nodes $.Release.Namespace) }}
{{- end }}
hosts = {{ include "netstead.toml" (concat $hosts .Values.api.hosts) }}
{{- if .Values.api.tlsSecretName }}
tls_cert = "/run/secrets/netstead-tls/tls.crt"
tls_key = "/run/secrets/netstead-tls/tls.key"
{{- if gt $replicas 1 }}
peer_ca_file = "/run/secrets/netstead-tls/ca.crt"
{{- end }}
{{- end }}
{{- end -}}

{{- /* What is read again while a pod runs. */ -}}
{{- define "netstead.runConfig" -}}
{{- if .Values.source.enabled }}
[source.{{ .Values.source.name }}]
type = "kubernetes"
{{- with .Values.source.kinds }}
kinds = {{ include "netstead.toml" . }}
{{- end }}
{{- with .Values.source.namespaces }}
namespaces = {{ include "netstead.toml" . }}
{{- end }}
{{- with .Values.source.gatewayNamespaces }}
gateway_namespaces = {{ include "netstead.toml" . }}
{{- end }}
{{- range $key, $value := .Values.source.settings }}
{{ $key }} = {{ include "netstead.toml" $value }}
{{- end }}
{{- end }}
{{- with .Values.config }}

{{ . | trim }}
{{- end }}
{{- end -}}
