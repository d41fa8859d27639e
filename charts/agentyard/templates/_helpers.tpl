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
{{- $settings := dict "container.lan_access" .Values.agents.lanAccess "container.host_access" .Values.agents.hostAccess -}}
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
