import createClient from "openapi-fetch";
import type { paths } from "./agentyard.js";

const baseUrl = process.env.AGENTYARD ?? "http://127.0.0.1:8080";
let cookie = "";
let csrf = "";
const client = createClient<paths>({
  baseUrl,
  fetch: (request) => {
    if (cookie) request.headers.set("Cookie", cookie);
    if (csrf) request.headers.set("X-CSRF-Token", csrf);
    return fetch(request);
  },
});

const signedIn = await client.POST("/api/login", { body: { username: "admin", password: process.env.PASSWORD ?? "" } });
if (signedIn.error) throw new Error(`${signedIn.error.code}: ${signedIn.error.error}`);
cookie = signedIn.response.headers.get("set-cookie")?.split(";")[0] ?? "";
csrf = (await client.GET("/api/csrf")).data?.csrf_token ?? "";

const { data, error } = await client.POST("/api/admin/users/create", { body: { username: "erin", wait: 60 } });
if (error) throw new Error(`${error.code}: ${error.error}`);
console.log(data.state, data.object);
for (const user of (await client.GET("/api/admin/users")).data?.users ?? []) console.log(user.username);
