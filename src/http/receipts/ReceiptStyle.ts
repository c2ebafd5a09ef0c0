/** CSS of the page of a receipt, in addition to the CSS of all pages. Most rules are for printing. */

export const receiptStyle = `
h1{margin:0}
.law{margin:.35rem 0 1.5rem;color:var(--soft)}
.compared{font-weight:600}
.pdf{margin:0;text-align:right}
section>p:not(:last-child){break-after:avoid}
tbody th{width:9.5rem;color:var(--soft);font-weight:400}
td{overflow-wrap:anywhere;white-space:pre-line}
td:last-child{width:11.5rem;overflow-wrap:normal}
td.match{color:var(--good);font-weight:600}
td.mismatch{color:var(--bad);font-weight:600}
.watermark{position:fixed;inset:0;display:grid;place-items:center;pointer-events:none;color:#a3231f;opacity:.16;font-size:4.2rem;font-weight:700;text-align:center;transform:rotate(-40deg);-webkit-print-color-adjust:exact;print-color-adjust:exact}
li code{display:block;white-space:pre-wrap;overflow-wrap:anywhere}
@media (max-width:40rem){tbody th,td:last-child{width:auto}}
@page{size:A4;margin:18mm 20mm 20mm;@bottom-left{font:8.5pt sans-serif;color:#5a616b}@bottom-right{font:8.5pt sans-serif;color:#5a616b}}
@media print{.pdf{display:none}body{background:none;font-size:10pt;line-height:1.42}main{max-width:none;margin:0;padding:0;box-shadow:none}section{margin-bottom:1.4rem}.verdict,pre{-webkit-print-color-adjust:exact;print-color-adjust:exact}a{text-decoration:none}}
`
