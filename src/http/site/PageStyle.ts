/** CSS of all pages. It uses system fonts, because a page loads no external resources. */

export const pageStyle = `
:root{color-scheme:light;--ink:#1b1e23;--soft:#5a616b;--line:#d5d9de;--good:#1f6b3a;--bad:#a3231f;--mixed:#b07a00}
*{box-sizing:border-box}
body{margin:0;background:#eef0f2;color:var(--ink);font:16px/1.5 "Source Sans 3","Source Sans Pro","Segoe UI",system-ui,-apple-system,"Noto Sans","Liberation Sans",sans-serif;font-kerning:normal;font-variant-numeric:lining-nums}
main{max-width:52rem;margin:2rem auto;padding:3rem 3.5rem 3.5rem;background:#fff;box-shadow:0 1px 4px #0002}
p{margin:0 0 .6em;overflow-wrap:anywhere}
.issuer{display:flex;justify-content:space-between;gap:.25rem 1rem;flex-wrap:wrap;margin:0 0 1.6rem;padding-bottom:.4rem;border-bottom:1px solid var(--line);color:var(--soft);font-size:.875rem}
h1{margin:0 0 1rem;font-size:1.75rem;line-height:1.2;font-weight:600;letter-spacing:-.01em;text-wrap:balance}
.verdict{margin:0 0 2rem;padding:1rem 1.25rem;border-left:4px solid var(--good);background:#f2f7f3;break-inside:avoid}
.verdict.mixed{border-color:var(--mixed);background:#fdf8ea}
.verdict.bad{border-color:var(--bad);background:#fbf2f1}
.headline{margin:0 0 .3rem;font-size:1.3rem;line-height:1.3;font-weight:600;color:var(--good)}
.mixed .headline{color:var(--ink)}
.bad .headline{color:var(--bad)}
.verdict>:last-child{margin:0}
.mark{margin:0 0 1.5rem;padding:.5rem 1rem;background:var(--bad);color:#fff;font-weight:600;text-align:center;-webkit-print-color-adjust:exact;print-color-adjust:exact}
section{margin:0 0 1.9rem}
h2{margin:0 0 .6rem;padding-bottom:.25rem;border-bottom:1px solid var(--line);font-size:1.1rem;line-height:1.3;font-weight:600;break-after:avoid}
h3{margin:1rem 0 .3rem;font-size:.875rem;font-weight:600;color:var(--soft);break-after:avoid}
dl{margin:0 0 .6em;break-inside:avoid}
dl div{display:grid;grid-template-columns:minmax(9rem,14.5rem) 1fr;gap:1.25rem;align-items:baseline;padding:.16rem 0;break-inside:avoid}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere;white-space:pre-line}
dd.code,code,pre{font-family:"Source Code Pro","SFMono-Regular",Menlo,Consolas,"Noto Sans Mono","Liberation Mono",monospace;font-size:.86em}
table{width:100%;margin:0 0 .8em;border-collapse:collapse}
th,td{padding:.34rem 1.25rem .34rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td:last-child,th:last-child{padding-right:0}
tr{break-inside:avoid}
thead th{color:var(--soft);font-size:.875rem;font-weight:400}
ul,ol{margin:0 0 .6em;padding-left:1.2rem}
li{margin:0 0 .35em;padding-left:.15rem;break-inside:avoid}
pre{margin:0 0 .8em;padding:.7rem .9rem;background:#f5f6f7;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.45}
a{color:inherit}
@media (max-width:40rem){body{background:#fff}main{margin:0;padding:1.25rem;box-shadow:none}dl div{grid-template-columns:1fr;gap:0;padding:.3rem 0}th,td{padding-right:.7rem}}
`
