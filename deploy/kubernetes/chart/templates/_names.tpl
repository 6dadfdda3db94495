{{- define "netstead.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "netstead.selector" -}}
app.kubernetes.io/name: netstead
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "netstead.labels" -}}
{{ include "netstead.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "netstead.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "netstead.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* The Service that gives each pod a name of its own. */ -}}
{{- define "netstead.nodes" -}}
{{ include "netstead.fullname" . }}-nodes
{{- end -}}

{{- define "netstead.scheme" -}}
{{ if .Values.api.tlsSecretName }}https{{ else }}http{{ end }}
{{- end -}}

{{- /* Values that no schema can refuse with a sentence that helps. */ -}}
{{- define "netstead.check" -}}
{{- $store := .Values.store -}}
{{- if and (eq $store.type "local") (gt (int .Values.replicas) 1) -}}
{{- fail "replicas: a store of type `local` is on the volume of one pod. Set `store.type` to `raft` or `etcd`, or `replicas` to 1" -}}
{{- end -}}
{{- if and (ne $store.type "etcd") (not .Values.persistence.enabled) -}}
{{- fail (printf "persistence.enabled: a store of type `%s` without a volume is lost with its pod. Set it to true, or `store.type` to `etcd`" $store.type) -}}
{{- end -}}
{{- if and (eq $store.type "raft") (not $store.raft.secretName) -}}
{{- fail "store.raft.secretName: nodes must know each other. Name a Secret with a text of 16 characters or more" -}}
{{- end -}}
{{- if and (eq $store.type "etcd") (not $store.etcd.endpoints) -}}
{{- fail "store.etcd.endpoints: name the members of your etcd: [https://etcd-0.etcd:2379]" -}}
{{- end -}}
{{- if and $store.etcd.clientCertificate (not $store.etcd.tlsSecretName) -}}
{{- fail "store.etcd.clientCertificate: name the Secret with the certificate in `store.etcd.tlsSecretName`" -}}
{{- end -}}
{{- if and $store.etcd.user (not $store.etcd.passwordSecretName) -}}
{{- fail "store.etcd.user: name the Secret with its password in `store.etcd.passwordSecretName`" -}}
{{- end -}}
{{- if and .Values.source.gatewayNamespaces (not .Values.source.namespaces) -}}
{{- fail "source.gatewayNamespaces: Gateways of all namespaces are read while `source.namespaces` is empty. Leave it out, or set `source.namespaces`" -}}
{{- end -}}
{{- range list "type" "kinds" "namespaces" "gateway_namespaces" -}}
{{- if hasKey $.Values.source.settings . -}}
{{- fail (printf "source.settings.%s: the chart writes this key itself, from the values beside `settings`" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
