{{- /* Sentences about values that cannot be used, one a line. */}}
{{- define "agentyard.problems" -}}
{{- $v := .Values -}}
{{- $name := include "agentyard.fullname" . -}}
{{- $problems := list -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- $problems = append $problems (printf "the name %s is no name of a Service (lower-case letters, digits and -, with a letter first); set fullnameOverride" $name) -}}
{{- end -}}
{{- if not $v.engine.kind -}}
{{- $problems = append $problems "engine.kind is empty: choose what runs the agents, with --set engine.kind=kubernetes or engine.kind=docker" -}}
{{- end -}}
{{- range list (lookup "apps/v1" "Deployment" .Release.Namespace $name) (lookup "v1" "PersistentVolumeClaim" .Release.Namespace (include "agentyard.claim" (list $ "data"))) -}}
{{- $before := dig "metadata" "labels" "agentyard.io/engine" "" (default dict .) -}}
{{- if and $before $v.engine.kind (ne $before $v.engine.kind) -}}
{{- $problems = append $problems (printf "engine.kind: %s/%s was installed with %s, and the kind cannot be changed; install another release" (lower .kind) .metadata.name $before) -}}
{{- end -}}
{{- end -}}
{{- if and (gt (int $v.replicas) 1) (eq $v.engine.kind "docker") -}}
{{- $problems = append $problems "replicas: engine.kind docker runs in the service's Pod, so there is one; set it to 1" -}}
{{- end -}}
{{- if and (gt (int $v.replicas) 1) (eq $v.database.type "sqlite") -}}
{{- $problems = append $problems "replicas: several Pods cannot share a database of type sqlite; set it to 1, or use postgresql" -}}
{{- end -}}
{{- if eq $v.engine.kind "docker" -}}
{{- $problems = concat $problems (splitList "\n" (include "agentyard.dockerProblems" .)) -}}
{{- end -}}
{{- if eq $v.engine.kind "kubernetes" -}}
{{- $problems = concat $problems (splitList "\n" (include "agentyard.kubernetesProblems" .)) -}}
{{- end -}}
{{- if not $v.image.repository -}}
{{- $problems = append $problems "image.repository is empty: push the service's image to a registry that your nodes reach, and name it here" -}}
{{- end -}}
{{- if and (eq $v.database.type "sqlite") (or $v.database.url $v.database.existingSecret.name) -}}
{{- $problems = append $problems "database: type sqlite takes no url and no existingSecret; remove them, or set database.type=postgresql" -}}
{{- end -}}
{{- if and (eq $v.database.type "postgresql") (not $v.database.url) (not $v.database.existingSecret.name) -}}
{{- $problems = append $problems "database: type postgresql needs a server; set database.existingSecret.name, or database.url" -}}
{{- end -}}
{{- if and $v.database.url $v.database.existingSecret.name -}}
{{- $problems = append $problems "database: the URL is given both by url and by existingSecret; remove one" -}}
{{- end -}}
{{- if and $v.database.url (not (regexMatch "^postgres(ql)?://" $v.database.url)) -}}
{{- $problems = append $problems "database.url must begin with postgres:// or postgresql://" -}}
{{- end -}}
{{- if and $v.admin.password $v.admin.existingSecret.name -}}
{{- $problems = append $problems "admin: the password is given both by password and by existingSecret; remove one" -}}
{{- end -}}
{{- if and $v.admin.password (lt (len $v.admin.password) 8) -}}
{{- $problems = append $problems "admin.password: a password has at least 8 characters" -}}
{{- end -}}
{{- if and $v.tls.enabled (not $v.tls.existingSecret) -}}
{{- $problems = append $problems "tls.existingSecret is empty: name the Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if and $v.tls.existingSecret (not $v.tls.enabled) -}}
{{- $problems = append $problems "tls.existingSecret is given, but HTTPS is off; set tls.enabled=true, or remove it" -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.host) -}}
{{- $problems = append $problems "ingress.host is empty: name the host at which browsers reach the service" -}}
{{- end -}}
{{- if and $v.service.externalTrafficPolicy (eq $v.service.type "ClusterIP") -}}
{{- $problems = append $problems "service.externalTrafficPolicy has no effect on a ClusterIP; remove it, or choose another service.type" -}}
{{- end -}}
{{- range $part := list "engine" "database" -}}
{{- $claim := index $v.persistence $part -}}
{{- if and $v.persistence.data.existingClaim (eq $v.persistence.data.existingClaim $claim.existingClaim) -}}
{{- $problems = append $problems (printf "persistence: data and %s need two claims; name another one for %s" $part $part) -}}
{{- end -}}
{{- end -}}
{{- if and $v.networkPolicy.egress.rules (not (and $v.networkPolicy.enabled $v.networkPolicy.egress.enabled)) -}}
{{- $problems = append $problems "networkPolicy.egress.rules have no effect; set networkPolicy.enabled and networkPolicy.egress.enabled" -}}
{{- end -}}
{{- if has (int $v.metrics.port) (list 8080 8081 8082) -}}
{{- $problems = append $problems "metrics.port: 8080 is the service's port, 8081 that of agents and 8082 that of replicas; choose another" -}}
{{- end -}}
{{- range $key, $value := $v.settings -}}
{{- if and (kindIs "map" $value) (not (contains "." $key)) (not (has $key (list "agent" "security"))) -}}
{{- $problems = append $problems (printf "settings: %s is a group of keys; give the keys in it, with --set as 'settings.%s\\.%s=…'" $key $key (keys $value | sortAlpha | first | default "KEY")) -}}
{{- end -}}
{{- if and (eq $key "agent") (regexMatch "(?i)\"[a-z_-]*(api_?keys?|token|secret|password)\"" (toJson $value)) -}}
{{- $problems = append $problems "settings: agent holds secrets, and settings are not; put it into a Secret, and name that in settingsSecret" -}}
{{- end -}}
{{- if or (has $key (list "security" "image.registry_password" "ldap.bind_password" "oidc.client_secret")) (regexMatch "(^|[._])(password|secret|token|api_key)$" $key) -}}
{{- $problems = append $problems (printf "settings: %s is secret, and settings are not; put it into a Secret, and name that in settingsSecret" $key) -}}
{{- end -}}
{{- if contains ";" (printf "%s=%s" $key (ternary $value (toJson $value) (kindIs "string" $value))) -}}
{{- $problems = append $problems (printf "settings: %s contains a semicolon, which separates settings; set it with `agentyard config set` after the installation" $key) -}}
{{- end -}}
{{- end -}}
{{- range $v.backupDirectories -}}
{{- if regexMatch "^/(proc|sys|dev)(/|$)|/\\.\\.?(/|$)" . -}}
{{- $problems = append $problems (printf "backupDirectories: %s belongs to the system or leaves its directory; name the path of a mounted volume" .) -}}
{{- end -}}
{{- end -}}
{{- range $v.extraEnv -}}
{{- if regexMatch "^(AGENTYARD_(DATA_DIR|LISTEN|METRICS_LISTEN|DOCKER_HOST|ENGINE|ENGINE_OPTIONS|AGENT_LISTEN|REPLICA_LISTEN|REPLICA_ADDRESS|POD_NAME|ADMIN_SOCKET|ADAPTER|LOG_FORMAT|SET|DATABASE_URL|ADMIN_PASSWORD_FILE|BACKUP_DIRECTORY|TLS_CERT|TLS_KEY)|SECRET_SETTINGS|POD_IP|HOME)$" (default "" .name) -}}
{{- $problems = append $problems (printf "extraEnv: %s is set by another value of this chart; use that one" .name) -}}
{{- end -}}
{{- end -}}
{{ join "\n" (compact $problems | uniq) }}
{{- end }}

{{- /* The same about values that an engine in the Pod has no use for. */}}
{{- define "agentyard.dockerProblems" -}}
{{- $v := .Values -}}
{{- $problems := list -}}
{{- if $v.agents.pod -}}
{{- $problems = append $problems "agents.pod: agents of engine.kind docker are no Pods; remove it" -}}
{{- end -}}
{{- with $v.agents.network -}}
{{- if or (not .managePolicies) .closed .nameServers .nameServerLabels .proxy -}}
{{- $problems = append $problems "agents.network: agents of engine.kind docker share the service's Pod, and networkPolicy is for both; remove it" -}}
{{- end -}}
{{- end -}}
{{- if not $v.agents.exec -}}
{{- $problems = append $problems "agents.exec: the engine in the Pod has no such right to take away; remove it" -}}
{{- end -}}
{{- if or $v.persistence.database.existingClaim $v.persistence.database.storageClass -}}
{{- $problems = append $problems "persistence.database: the database of engine.kind docker is on the data claim; remove it" -}}
{{- end -}}
{{- if lt (int $v.terminationGracePeriodSeconds) 30 -}}
{{- $problems = append $problems "terminationGracePeriodSeconds: service and engine take up to 25 s to stop; set at least 30" -}}
{{- end -}}
{{- if has "ReadWriteOncePod" (concat $v.persistence.data.accessModes $v.persistence.engine.accessModes) -}}
{{- $problems = append $problems "persistence: a claim of access mode ReadWriteOncePod cannot be mounted by the Pod of `helm test`; set accessModes to [ReadWriteOnce]" -}}
{{- end -}}
{{- if hasKey $v.podSecurityContext "fsGroup" -}}
{{- $problems = append $problems "podSecurityContext.fsGroup would open the master key to a group, and the service refuses such a key; remove it" -}}
{{- end -}}
{{ join "\n" $problems }}
{{- end }}

{{- /* The same about values that do not go with agents as Pods. */}}
{{- define "agentyard.kubernetesProblems" -}}
{{- $v := .Values -}}
{{- $problems := list -}}
{{- if semverCompare "<1.33.0-0" .Capabilities.KubeVersion.Version -}}
{{- $problems = append $problems (printf "engine.kind: agents as Pods need Kubernetes 1.33 or newer, and this cluster has %s; upgrade it, or set engine.kind=docker" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- with $v.engine.docker -}}
{{- if or .storageDriver .extraArgs .extraEnv .image.digest -}}
{{- $problems = append $problems "engine.docker: engine.kind kubernetes has no engine in the Pod; remove it" -}}
{{- end -}}
{{- end -}}
{{- if ne $v.agents.hostAccess "enforce" -}}
{{- $problems = append $problems "agents.hostAccess: agents of engine.kind kubernetes have Pods of their own, which agents.network closes; remove it" -}}
{{- end -}}
{{- if or $v.persistence.engine.existingClaim $v.persistence.engine.storageClass -}}
{{- $problems = append $problems "persistence.engine: engine.kind kubernetes has no engine in the Pod; remove it" -}}
{{- end -}}
{{- if and (eq $v.database.type "postgresql") (or $v.persistence.database.existingClaim $v.persistence.database.storageClass) -}}
{{- $problems = append $problems "persistence.database is for a database of type sqlite; remove it" -}}
{{- end -}}
{{- $modes := $v.persistence.data.accessModes -}}
{{- if and $modes (not (has "ReadWriteMany" $modes)) -}}
{{- $problems = append $problems "persistence.data.accessModes: the service and agents on all nodes mount the data claim, so it must be [ReadWriteMany]; choose a storage class that has it, such as NFS or CephFS" -}}
{{- end -}}
{{- with $v.persistence.data.existingClaim -}}
{{- $there := lookup "v1" "PersistentVolumeClaim" $.Release.Namespace . -}}
{{- if and $there (not (has "ReadWriteMany" $there.spec.accessModes)) -}}
{{- $problems = append $problems (printf "persistence.data.existingClaim: %s is %s, and the service and agents on all nodes mount it; name a claim of ReadWriteMany" . (join ", " $there.spec.accessModes)) -}}
{{- end -}}
{{- end -}}
{{- $allowed := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "runtimeClassName" "priorityClassName" "imagePullSecrets" "annotations" "labels" -}}
{{- range $key := keys $v.agents.pod | sortAlpha -}}
{{- if not (has $key $allowed) -}}
{{- $problems = append $problems (printf "agents.pod.%s: Agentyard sets it, or no agent may have it; remove it (there may be %s)" $key (join ", " $allowed)) -}}
{{- end -}}
{{- end -}}
{{- range $key, $_ := default dict $v.agents.pod.labels -}}
{{- if regexMatch "^(agentyard\\.io|app\\.kubernetes\\.io)/" $key -}}
{{- $problems = append $problems (printf "agents.pod.labels: policies select agents by %s; remove it" $key) -}}
{{- end -}}
{{- end -}}
{{- range $key, $_ := default dict $v.agents.pod.annotations -}}
{{- if hasPrefix "agentyard.io/" $key -}}
{{- $problems = append $problems (printf "agents.pod.annotations: %s is Agentyard's own; remove it" $key) -}}
{{- end -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- $problems = append $problems "serviceAccount.name is empty: the service account default would get the service's rights, and Pods of others have it; name one, or set serviceAccount.create=true" -}}
{{- end -}}
{{- if eq (include "agentyard.serviceAccount" .) (include "agentyard.agentServiceAccount" .) -}}
{{- $problems = append $problems "agents.serviceAccount: agents would have the rights of the service; name another one" -}}
{{- end -}}
{{- range $key := list "runAsUser" "runAsGroup" "runAsNonRoot" "fsGroup" -}}
{{- if hasKey $v.podSecurityContext $key -}}
{{- $problems = append $problems (printf "podSecurityContext.%s: engine.kubernetes has the user and the group of the service; remove it" $key) -}}
{{- end -}}
{{- end -}}
{{- if eq (default "" $v.podSecurityContext.fsGroupChangePolicy) "Always" -}}
{{- $problems = append $problems "podSecurityContext.fsGroupChangePolicy: Always would open the master key to a group at each start, and the service refuses such a key; remove it" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled $v.networkPolicy.egress.enabled (not $v.networkPolicy.egress.rules) -}}
{{- $problems = append $problems "networkPolicy.egress closes the API server, which the service asks for everything; name it in networkPolicy.egress.rules" -}}
{{- end -}}
{{ join "\n" $problems }}
{{- end }}
