"""What schemathesis does beside its own checks."""

import schemathesis


@schemathesis.check
def documented_failure(ctx, response, case):
    """Each failure has a status and a code that the operation or one of its groups documents."""
    if response.status_code < 400:
        return
    operation = case.operation.definition.raw
    if str(response.status_code) in operation["responses"]:
        return
    groups = case.operation.schema.raw_schema["components"]["x-failure-groups"]
    documented = [groups[name] for name in operation["x-failure-groups"]]
    documented.append(operation.get("x-failures", {}))
    codes = [code for codes in documented for code in codes.get(str(response.status_code), [])]
    if response.json()["code"] not in codes:
        raise AssertionError(f"{response.status_code} {response.json()['code']} is not documented: {codes}")


def as_form(body):
    """The fields as a form has them, or None where a field is no text, number, switch or list of texts."""
    fields = {}
    for name, value in body.items():
        if isinstance(value, list) and all(isinstance(part, str) and part and "," not in part for part in value):
            value = ",".join(value)
        if isinstance(value, bool):
            value = str(value).lower()
        if not isinstance(value, (str, int, float)):
            return None
        fields[name] = str(value)
    return fields


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Sends every second body that a form can have as a form: of the same fields, as the document says in prose."""
    if case.media_type != "application/json" or not isinstance(case.body, dict):
        return
    fields = as_form(case.body)
    if fields and sum(map(len, fields.values())) % 2:
        case.media_type = "application/x-www-form-urlencoded"
        case.body = fields
