/** The JavaScript of the page `/docs`. It sends the request of a form and shows the response. */

export const referenceScript = `"use strict";
for (const form of document.querySelectorAll("form[data-path]")) {
  const output = form.querySelector("output");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const headers = {};
    const query = new URLSearchParams();
    let path = form.dataset.path;
    let body;
    for (const field of form.querySelectorAll("[name]")) {
      if (field.dataset.in === "body") body = field.value;
      else if (field.dataset.in === "path") path = path.replace("{" + field.name + "}", encodeURIComponent(field.value).replaceAll("%2F", "/"));
      else if (field.value === "") continue;
      else if (field.dataset.in === "query") query.set(field.name, field.value);
      else headers[field.name] = field.value;
    }
    const key = document.getElementById("api-key").value.trim();
    const token = document.getElementById("token").value.trim();
    const schemes = form.dataset.schemes.split(" ");
    if (key !== "" && schemes.includes("apiKey")) headers["X-Api-Key"] = key;
    else if (token !== "" && schemes.some((scheme) => scheme !== "" && scheme !== "apiKey")) headers.Authorization = "Bearer " + token;
    if (body !== undefined && body.trim() !== "") headers["Content-Type"] = "application/json";
    else body = undefined;
    output.textContent = "…";
    try {
      const url = path + (query.size > 0 ? "?" + query : "");
      const response = await fetch(url, { method: form.dataset.method, headers, body });
      const type = response.headers.get("content-type") ?? "";
      const text = /json|text/.test(type) ? await response.text() : "(" + (await response.blob()).size + " bytes of " + type + ")";
      const notable = ["x-service-usage", "ratelimit", "retry-after", "warning"].flatMap((name) =>
        response.headers.has(name) ? [name + ": " + response.headers.get(name)] : []);
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch {}
      output.textContent = [form.dataset.method + " " + url, response.status + " " + response.statusText, ...notable, "", shown].join("\\n");
    } catch (error) {
      output.textContent = "The request failed: " + error.message;
    }
  });
}
`
