/**
 * The sandbox's register of companies: one invented company per member state, a few companies from recorded answers, and some
 * whose names test document rendering.
 */
import type { VatId } from "#domain/vat/VatId.ts"

/** A registered company, in the fields that BZSt and VIES compare. */
export interface Company {
  readonly name: string
  readonly street: string
  readonly postalCode: string
  readonly city: string
}

const company = (name: string, street: string, postalCode: string, city: string): Company => ({ name, street, postalCode, city })

const byMemberState: ReadonlyMap<string, Company> = new Map([
  ["AT", company("Donau Muster GmbH", "Mustergasse 1", "1010", "Wien")],
  ["BE", company("SA VOORBEELD", "Rue de l'Exemple 1", "1000", "Bruxelles")],
  ["BG", company("ПРИМЕР ООД", "ул. Примерна 1", "1000", "гр. СОФИЯ")],
  ["CY", company("PARADEIGMA LTD", "Ledras 1", "1011", "ΛΕΥΚΩΣΙΑ")],
  ["CZ", company("Příklad, s.r.o.", "Příkladná 1", "110 00", "PRAHA 1")],
  ["DE", company("Muster GmbH", "Musterstraße 1", "10115", "Berlin")],
  ["DK", company("EKSEMPEL ApS", "Eksempelvej 1", "1050", "København K")],
  ["EE", company("Näidis OÜ", "Näidise tn 1", "10111", "Tallinn")],
  ["EL", company("ΠΑΡΑΔΕΙΓΜΑ Α.Ε.", "ΕΡΜΟΥ 1", "10563", "ΑΘΗΝΑ")],
  ["ES", company("EJEMPLO, S.L.", "Calle Mayor 1", "28013", "MADRID")],
  ["FI", company("Esimerkki Oy", "Esimerkkikatu 1", "00100", "HELSINKI")],
  ["FR", company("SARL EXEMPLE", "1 RUE DE L'EXEMPLE", "75001", "PARIS")],
  ["HR", company("PRIMJER d.o.o.", "Ilica 1", "10000", "ZAGREB")],
  ["HU", company("PÉLDA KFT.", "PÉLDA UTCA 1", "1051", "BUDAPEST")],
  ["IE", company("EXAMPLE LIMITED", "1 Example Street", "D02 XY45", "DUBLIN 2")],
  ["IT", company("ESEMPIO S.R.L.", "VIA ROMA 1", "00184", "ROMA")],
  ["LT", company("UAB Pavyzdys", "Gedimino pr. 1", "01103", "Vilnius")],
  ["LU", company("EXEMPLE S.à r.l.", "1, Grand-Rue", "1661", "LUXEMBOURG")],
  ["LV", company("SIA Piemērs", "Brīvības iela 1", "LV-1010", "Rīga")],
  ["MT", company("EŻEMPJU LIMITED", "1, Triq ir-Repubblika", "VLT 1110", "Valletta")],
  ["NL", company("VOORBEELD B.V.", "VOORBEELDSTRAAT 1", "1012AB", "AMSTERDAM")],
  ["PL", company("PRZYKŁAD SPÓŁKA Z OGRANICZONĄ ODPOWIEDZIALNOŚCIĄ", "PRZYKŁADOWA 1", "00-001", "WARSZAWA")],
  ["PT", company("EXEMPLO LDA", "RUA AUGUSTA 1", "1100-048", "LISBOA")],
  ["RO", company("EXEMPLU S.R.L.", "STR. EXEMPLULUI 1", "010011", "BUCUREŞTI")],
  ["SE", company("Exempel AB", "Exempelgatan 1", "111 22", "STOCKHOLM")],
  ["SI", company("PRIMER d.o.o.", "Primerova ulica 1", "1000", "Ljubljana")],
  ["SK", company("Príklad, s. r. o.", "Príkladná 1", "811 01", "Bratislava")],
  ["XI", company("EXAMPLE (NI) LIMITED", "1 Example Road", "BT1 5GS", "BELFAST")]
])

/** VAT IDs from documents of the authorities or recorded answers, with their company data. */
const published: ReadonlyMap<string, Company> = new Map([
  ["ATU12345678", company("Musterhaus GmbH & Co KG", "Musterstrasse 22", "12345", "musterort")],
  ["CZ45274649", company("ČEZ, a. s.", "Duhová 1444/2\nPRAHA 4 - MICHLE", "140 00", " PRAHA 4")],
  ["ESA15075062", company("INDUSTRIA DE DISEÑO TEXTIL, S.A.", "Avenida de la Diputación s/n", "15142", "ARTEIXO")],
  ["PL7740001454", company("ORLEN SPÓŁKA AKCYJNA", "CHEMIKÓW 7", "09-411", "PŁOCK")]
])

/**
 * Companies whose names test document rendering: long, umlauts, Greek, and characters that are special in HTML, CSV and shells.
 */
const specimens = {
  umlauts: company(
    "Süddeutsche Präzisionswerkzeug- und Überwachungsgerätebau Gesellschaft mit beschränkter Haftung & Co. Kommanditgesellschaft auf Aktien",
    "Große Öffnungsstraße 12 a–c, Rückgebäude",
    "80331",
    "München-Übersee"
  ),
  greek: company(
    "ΑΝΩΝΥΜΟΣ ΕΤΑΙΡΕΙΑ ΕΜΠΟΡΙΑΣ ΚΑΙ ΔΙΑΘΕΣΗΣ ΗΛΕΚΤΡΟΝΙΚΩΝ ΕΙΔΩΝ «ΠΑΡΑΔΕΙΓΜΑ» ΚΑΙ ΣΙΑ Ε.Ε.",
    "ΛΕΩΦΟΡΟΣ ΒΑΣΙΛΙΣΣΗΣ ΣΟΦΙΑΣ 112, ΑΜΠΕΛΟΚΗΠΟΙ",
    "11527",
    "ΑΘΗΝΑ"
  ),
  veryLong: company("Außergewöhnlich ".repeat(18) + "GmbH", "Endlosstraße ".repeat(18) + "1", "99999", "Langenort"),
  markup: company(`=Muster & Söhne <b>"Test"</b>; 'GmbH', ${"`"}$(x)${"`"} \\ €`, 'Straße <1>, "Hof"', "12345", "Ort & Umland")
} as const

export type Specimen = keyof typeof specimens

/** Returns the company registered under a VAT ID. Every well-formed VAT ID has a company, even an invalid one. */
export const companyOf = (vatId: VatId, specimen: Specimen | undefined): Company =>
  specimen !== undefined
    ? specimens[specimen]
    : (published.get(vatId.value) ?? byMemberState.get(vatId.memberState.prefix) ?? specimens.umlauts)

/** Returns the address as VIES formats it: lines separated by `\n`. */
export const addressOf = (company: Company): string => `${company.street}\n${company.postalCode} ${company.city}`

/** Returns true if two texts are equal apart from case, punctuation, spaces and the spelling of umlauts. */
export const sameText = (left: string, right: string): boolean => folded(left) === folded(right)

const folded = (text: string) =>
  text
    .normalize("NFC")
    .toLowerCase()
    .replaceAll("ß", "ss")
    .replaceAll("ä", "ae")
    .replaceAll("ö", "oe")
    .replaceAll("ü", "ue")
    .normalize("NFD")
    .replace(/[^\p{L}\p{N}]/gu, "")
