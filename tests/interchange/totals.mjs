// Totals of profiles in pprof's format as pprof-format reads them: node totals.mjs read FILE…
// A profile that pprof-format writes: node totals.mjs write FILE
import { readFileSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { Function, Line, Location, Mapping, Profile, Sample, StringTable, ValueType } from "pprof-format";

function totals(file) {
  const bytes = readFileSync(file);
  const profile = Profile.decode(bytes[0] === 0x1f ? gunzipSync(bytes) : bytes);
  const text = (index) => profile.stringTable.strings[Number(index)];
  const functions = new Map(profile.function.map((found) => [String(found.id), text(found.name)]));
  const leaves = new Map(profile.location.map((at) => [String(at.id), functions.get(String(at.line[0]?.functionId))]));
  const events = profile.sampleType.map((kind) => ({ event: text(kind.type), total: 0n, functions: {} }));
  for (const sample of profile.sample) {
    const leaf = leaves.get(String(sample.locationId[0]));
    sample.value.forEach((value, at) => {
      events[at].total += BigInt(value);
      events[at].functions[leaf] = (events[at].functions[leaf] ?? 0n) + BigInt(value);
    });
  }
  return events;
}

function write(file) {
  const stringTable = new StringTable();
  const text = (value) => stringTable.dedup(value);
  const names = ["main", "parse", "copy"];
  const profile = new Profile({
    sampleType: [
      new ValueType({ type: text("samples"), unit: text("count") }),
      new ValueType({ type: text("cpu"), unit: text("nanoseconds") }),
    ],
    mapping: [new Mapping({ id: 1, filename: text("/opt/a.out"), buildId: text("abc") })],
    function: names.map((name, at) => new Function({ id: at + 1, name: text(name), filename: text(`${name}.c`) })),
    location: names.map(
      (_, at) => new Location({ id: at + 1, mappingId: 1, line: [new Line({ functionId: at + 1, line: 7 + at })] }),
    ),
    sample: Array.from({ length: 100 }, (_, at) => {
      const locationId = at % 2 ? [3, 2, 1] : [2, 1];
      return new Sample({ locationId, value: [at, BigInt(at) * 10_000_000_000n] });
    }),
    periodType: new ValueType({ type: text("cpu"), unit: text("nanoseconds") }),
    period: 10_000_000,
    stringTable,
  });
  writeFileSync(file, gzipSync(profile.encode()));
}

const [mode, ...files] = process.argv.slice(2);
if (mode === "write") files.forEach(write);
const found = Object.fromEntries(files.map((file) => [file, totals(file)]));
console.log(JSON.stringify(found, (_, value) => (typeof value === "bigint" ? String(value) : value)));
