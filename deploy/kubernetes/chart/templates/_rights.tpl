{{- /* The group and the resource of each kind that the source reads. Beside `plural`, `also` are those it needs for its targets. */ -}}
{{- define "netstead.kinds" -}}
ingress: { group: networking.k8s.io, plural: ingresses }
service: { group: "", plural: services, also: [endpointslice, nodes] }
httproute: { group: gateway.networking.k8s.io, plural: httproutes, also: [gateway] }
grpcroute: { group: gateway.networking.k8s.io, plural: grpcroutes, also: [gateway] }
tlsroute: { group: gateway.networking.k8s.io, plural: tlsroutes, also: [gateway] }
tcproute: { group: gateway.networking.k8s.io, plural: tcproutes, also: [gateway] }
udproute: { group: gateway.networking.k8s.io, plural: udproutes, also: [gateway] }
ingressroute: { group: traefik.io, plural: ingressroutes }
ingressroutetcp: { group: traefik.io, plural: ingressroutetcps }
dnsendpoint: { group: externaldns.k8s.io, plural: dnsendpoints }
dnsrecord: { group: netstead.io, plural: dnsrecords }
node: { group: "", plural: nodes }
pod: { group: "", plural: pods, also: [nodes] }
istio-gateway: { group: networking.istio.io, plural: gateways }
istio-virtualservice: { group: networking.istio.io, plural: virtualservices }
contour-httpproxy: { group: projectcontour.io, plural: httpproxies }
openshift-route: { group: route.openshift.io, plural: routes }
{{- end -}}

{{- /* What the source reads, as JSON: lists of `group/plural` for `namespaces`, `gateways` (where they live elsewhere) and `cluster`. */ -}}
{{- define "netstead.reads" -}}
{{- $source := .Values.source -}}
{{- $kinds := include "netstead.kinds" . | fromYaml -}}
{{- $wanted := $source.kinds | default (without (keys $kinds | sortAlpha) "node" "pod" "istio-gateway" "istio-virtualservice" "contour-httpproxy" "openshift-route") -}}
{{- $spread := not $source.namespaces -}}
{{- $nodes := ternary $spread $source.nodes (kindIs "invalid" $source.nodes) -}}
{{- $namespaced := list -}}
{{- $gateways := list -}}
{{- $cluster := list -}}
{{- range $word := $wanted -}}
{{- $kind := get $kinds $word -}}
{{- if eq $word "node" -}}
{{- $cluster = append $cluster "/nodes" -}}
{{- else -}}
{{- $namespaced = append $namespaced (printf "%s/%s" $kind.group $kind.plural) -}}
{{- end -}}
{{- range $kind.also -}}
{{- if eq . "endpointslice" -}}
{{- $namespaced = append $namespaced "discovery.k8s.io/endpointslices" -}}
{{- else if eq . "gateway" -}}
{{- if $source.gatewayNamespaces -}}
{{- $gateways = append $gateways "gateway.networking.k8s.io/gateways" -}}
{{- else -}}
{{- $namespaced = append $namespaced "gateway.networking.k8s.io/gateways" -}}
{{- end -}}
{{- else if and (eq . "nodes") $nodes -}}
{{- $cluster = append $cluster "/nodes" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $spread -}}
{{- $cluster = concat $cluster $namespaced -}}
{{- $namespaced = list -}}
{{- end -}}
{{- dict "namespaces" $namespaced "gateways" $gateways "cluster" $cluster | toJson -}}
{{- end -}}

{{- /* Rules that allow to read a list of `group/plural`: one for each group. */ -}}
{{- define "netstead.readRules" -}}
{{- $groups := dict -}}
{{- range . | uniq | sortAlpha -}}
{{- $parts := splitn "/" 2 . -}}
{{- $_ := set $groups $parts._0 (append (get $groups $parts._0 | default list) $parts._1) -}}
{{- end -}}
{{- range $group, $plurals := $groups }}
- apiGroups: [{{ $group | quote }}]
  resources: [{{ join ", " $plurals }}]
  verbs: [list, watch]
{{- end -}}
{{- end -}}

{{- /* Rules that allow to write what became of names: the status of records, and Events; and addresses of load balancers. */ -}}
{{- define "netstead.writeRules" -}}
{{- $source := .Values.source -}}
{{- range $kind, $rule := dict "dnsendpoint" (list "externaldns.k8s.io" "dnsendpoints") "dnsrecord" (list "netstead.io" "dnsrecords") }}
{{- if and (or (not $source.kinds) (has $kind $source.kinds)) (ne (get $source.settings "status" | toString) "false") }}
- apiGroups: [{{ index $rule 0 | quote }}]
  resources: [{{ index $rule 1 }}/status]
  verbs: [patch]
{{- end }}
{{- end }}
{{- if ne (get $source.settings "events" | toString) "false" }}
- apiGroups: ["events.k8s.io"]
  resources: [events]
  verbs: [create]
{{- end }}
{{- if $source.loadBalancers }}
- apiGroups: [""]
  resources: [services/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get]
{{- end }}
{{- end -}}
