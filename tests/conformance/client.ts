// Types that a console reads.
import type { components, operations, paths } from "./types.js";

type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : never;

type Users = Json<operations["users_list"]["responses"][200]>;
type Refused = Json<operations["users_create"]["responses"]["default"]>;
type Creation = Json<NonNullable<paths["/api/admin/users/create"]["post"]["requestBody"]>>;

const creation: Creation = { username: "alice" };
const failure: components["schemas"]["Failure"] = { success: false, error: "taken", code: "already_exists" };
const refused: Refused = failure;
export const names = (users: Users): string[] => users.users.map((user) => user.username);
export const texts = [creation.username, refused.code];
