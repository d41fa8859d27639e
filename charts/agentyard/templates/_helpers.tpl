{{- define "agentyard.chart" -}}
{{ printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "agentyard.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- /* Name of the objects, short enough for suffixes. */}}
{{- define "agentyard.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains (include "agentyard.name" .) .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "agentyard.name" .) | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "agentyard.selector" -}}
app.kubernetes.io/name: {{ include "agentyard.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- /* A map of strings, as labels and annotations are, of several; the last wins. */}}
{{- define "agentyard.map" -}}
{{- $all := dict -}}
{{- range . -}}
{{- range $key, $value := . -}}
{{- $_ := set $all $key (toString $value) -}}
{{- end -}}
{{- end -}}
{{ toYaml $all }}
{{- end }}

{{- /* Labels of an object: (list . (dict more)). */}}
{{- define "agentyard.labels" -}}
{{- $root := index . 0 -}}
{{- $own := dict "helm.sh/chart" (include "agentyard.chart" $root) "app.kubernetes.io/version" $root.Chart.AppVersion "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{ include "agentyard.map" (list $root.Values.commonLabels $own (include "agentyard.selector" $root | fromYaml) (index . 1)) }}
{{- end }}

{{- define "agentyard.image" -}}
{{- $image := index . 0 -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest | quote }}
{{- else -}}
{{ printf "%s:%s" $image.repository (default (index . 1) $image.tag) | quote }}
{{- end -}}
{{- end }}

{{- define "agentyard.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "agentyard.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- /* Text of a variable or argument, in which Kubernetes replaces $(NAME), and $$ by $. */}}
{{- define "agentyard.literal" -}}
{{ . | toString | replace "$" "$$" }}
{{- end }}

{{- define "agentyard.publicUrl" -}}
{{- if .Values.publicUrl -}}
{{ .Values.publicUrl }}
{{- else if and .Values.ingress.enabled .Values.ingress.host -}}
{{ ternary "https" "http" .Values.ingress.tls.enabled }}://{{ .Values.ingress.host }}
{{- end -}}
{{- end }}

{{- /* Settings of a new installation, as KEY=VALUE separated by `;`: text as it is, else JSON. */}}
{{- define "agentyard.settings" -}}
{{- $settings := dict "container.lan_access" .Values.agents.lanAccess -}}
{{- if eq .Values.engine.kind "docker" -}}
{{- $_ := set $settings "container.host_access" .Values.agents.hostAccess -}}
{{- end -}}
{{- with include "agentyard.publicUrl" . -}}
{{- $_ := set $settings "web.public_url" . -}}
{{- end -}}
{{- with .Values.trustedProxies -}}
{{- $_ := set $settings "web.trusted_proxies" . -}}
{{- end -}}
{{- range $key, $value := .Values.settings -}}
{{- $_ := set $settings $key $value -}}
{{- end -}}
{{- $pairs := list -}}
{{- range $key, $value := $settings -}}
{{- $text := $value -}}
{{- if not (kindIs "string" $value) -}}
{{- $text = toJson $value -}}
{{- end -}}
{{- $pairs = append $pairs (printf "%s=%s" $key $text) -}}
{{- end -}}
{{ join ";" $pairs }}
{{- end }}

{{- /* Data of the release's Secret; empty without one. */}}
{{- define "agentyard.secretData" -}}
{{- if and .Values.database.url (eq .Values.database.type "postgresql") }}
database-url: {{ .Values.database.url | b64enc | quote }}
{{- end }}
{{- if .Values.admin.password }}
admin-password: {{ .Values.admin.password | b64enc | quote }}
{{- end }}
{{- end }}

{{- /* Revision of the release in which its Secret changed last: restarts the Pod without a digest of the secret in it. */}}
{{- define "agentyard.secretRevision" -}}
{{- $revision := .Release.Revision | toString -}}
{{- $wanted := include "agentyard.secretData" . | fromYaml -}}
{{- $before := lookup "v1" "Secret" .Release.Namespace (include "agentyard.fullname" .) -}}
{{- if and $before (deepEqual (default dict $before.data) $wanted) -}}
{{- $revision = dig "metadata" "annotations" "agentyard.io/changed-in" $revision $before -}}
{{- end -}}
{{ $revision }}
{{- end }}

{{- define "agentyard.databaseSecret" -}}
name: {{ default (include "agentyard.fullname" .) .Values.database.existingSecret.name | quote }}
key: {{ ternary .Values.database.existingSecret.key "database-url" (ne .Values.database.existingSecret.name "") | quote }}
{{- end }}

{{- define "agentyard.claim" -}}
{{- $root := index . 0 -}}
{{- $part := index . 1 -}}
{{- $claim := index $root.Values.persistence $part -}}
{{ default (printf "%s-%s" (include "agentyard.fullname" $root) $part) $claim.existingClaim }}
{{- end }}

{{- define "agentyard.dataDir" -}}
/var/lib/agentyard/data
{{- end }}

{{- /* Access modes of a claim: (list . part). */}}
{{- define "agentyard.accessModes" -}}
{{- $root := index . 0 -}}
{{- $part := index . 1 -}}
{{- $usual := ternary "ReadWriteMany" "ReadWriteOnce" (and (eq $part "data") (eq $root.Values.engine.kind "kubernetes")) -}}
{{ join "," (default (list $usual) (index $root.Values.persistence $part).accessModes) }}
{{- end }}

{{- /* Claims of the release that this engine and database need. */}}
{{- define "agentyard.claims" -}}
{{- $parts := list "data" -}}
{{- if eq .Values.engine.kind "docker" -}}
{{- $parts = append $parts "engine" -}}
{{- else if eq .Values.database.type "sqlite" -}}
{{- $parts = append $parts "database" -}}
{{- end -}}
{{ join "," $parts }}
{{- end }}

{{- define "agentyard.databaseDir" -}}
/var/lib/agentyard-database
{{- end }}

{{- /* Whether replicas pass requests on to each other, so that there may be several: "true", or empty. */}}
{{- define "agentyard.hasReplicas" -}}
{{- if and (eq .Values.engine.kind "kubernetes") (eq .Values.database.type "postgresql") -}}
true
{{- end -}}
{{- end }}

{{- define "agentyard.agentServiceAccount" -}}
{{- if .Values.agents.serviceAccount.create -}}
{{ default (printf "%s-agent" (include "agentyard.fullname" .)) .Values.agents.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.agents.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- /* Labels of agents' Pods by which the service's policy selects them. A change replaces all agents. */}}
{{- define "agentyard.agentSelector" -}}
{{ include "agentyard.selector" . }}
app.kubernetes.io/component: agent
{{- end }}

{{- /* The file of --engine-options. */}}
{{- define "agentyard.engineOptions" -}}
{{- $pod := .Values.agents.pod -}}
{{- $labels := include "agentyard.map" (list .Values.commonLabels (default dict $pod.labels) (include "agentyard.agentSelector" . | fromYaml)) | fromYaml -}}
{{- $metadata := dict "labels" $labels -}}
{{- with $pod.annotations -}}
{{- $_ := set $metadata "annotations" (include "agentyard.map" (list .) | fromYaml) -}}
{{- end -}}
{{- $spec := omit $pod "labels" "annotations" "imagePullSecrets" -}}
{{- /* A container of the service's image runs before each agent. */ -}}
{{- with concat (default list $pod.imagePullSecrets) .Values.imagePullSecrets | uniq -}}
{{- $_ := set $spec "imagePullSecrets" . -}}
{{- end -}}
{{- $overlay := dict "metadata" $metadata -}}
{{- with $spec -}}
{{- $_ := set $overlay "spec" . -}}
{{- end -}}
{{- $network := dict
  "managePolicies" .Values.agents.network.managePolicies
  "serviceUrl" (printf "http://%s-agents.%s.svc:8081" (include "agentyard.fullname" .) .Release.Namespace)
  "serviceLabels" (merge (dict "app.kubernetes.io/component" "service") (include "agentyard.selector" . | fromYaml))
  "servicePort" 8081
  "closeSeconds" (int .Values.agents.network.closeSeconds) -}}
{{- with .Values.agents.network.nameServers -}}
{{- $_ := set $network "nameServers" . -}}
{{- end -}}
{{- with .Values.agents.network.nameServerLabels -}}
{{- $_ := set $network "nameServerLabels" . -}}
{{- end -}}
{{- with .Values.agents.network.closed -}}
{{- $_ := set $network "closed" . -}}
{{- end -}}
{{- with .Values.agents.network.proxy -}}
{{- $_ := set $network "proxy" . -}}
{{- end -}}
{{- $options := dict
  "namespace" .Release.Namespace
  "data" (dict "claim" (include "agentyard.claim" (list . "data")) "path" (base (include "agentyard.dataDir" .)))
  "image" (include "agentyard.image" (list .Values.image .Chart.AppVersion) | trimAll "\"")
  "program" "/usr/bin/agentyard"
  "network" $network
  "pods" (dict
    "serviceAccount" (include "agentyard.agentServiceAccount" .)
    "requestedPercent" (int .Values.agents.requestedPercent)
    "overlay" $overlay) -}}
{{ toYaml $options }}
{{- end }}

{{- /* Users of the Pod: ssh asks for the name of the service's. */}}
{{- define "agentyard.passwd" -}}
root:x:0:0:root:/root:/usr/sbin/nologin
agentyard:x:{{ int .Values.engine.kubernetes.runAsUser }}:{{ int .Values.engine.kubernetes.runAsGroup }}:agentyard:/tmp:/usr/sbin/nologin
{{- end }}

{{- /* The Pod's security context: what the engine needs, under podSecurityContext. */}}
{{- define "agentyard.podSecurityContext" -}}
{{- $context := dict -}}
{{- if eq .Values.engine.kind "kubernetes" -}}
{{- with .Values.engine.kubernetes -}}
{{- $context = dict "runAsNonRoot" true "runAsUser" (int .runAsUser) "runAsGroup" (int .runAsGroup) "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if .fsGroup -}}
{{- $_ := set $context "fsGroup" (int .runAsGroup) -}}
{{- $_ := set $context "fsGroupChangePolicy" "OnRootMismatch" -}}
{{- else -}}
{{- /* Secrets belong to root's group then. */ -}}
{{- $_ := set $context "supplementalGroups" (list 0) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $context = mergeOverwrite $context .Values.podSecurityContext -}}
{{- with $context -}}
{{ toYaml . }}
{{- end -}}
{{- end }}

{{- /* What a container without privileges may do. */}}
{{- define "agentyard.restricted" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
seccompProfile: {type: RuntimeDefault}
capabilities:
  drop: [ALL]
{{- end }}
