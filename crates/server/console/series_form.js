// The form of a series: when its contests open, start and end, how many are made ahead, and their template.

import { beside, contestFields } from "./contest_form.js";
import { h } from "./dom.js";
import { field } from "./form.js";
import { cron, days, read } from "./schedules.js";
import { t } from "./texts.js";
import { zoneField } from "./zones.js";

const MOMENTS = ["open", "start", "end"];
const STANDARD = { open: "0 0 * * *", start: "0 9 * * *", end: "0 18 * * *" };
const KINDS = ["daily", "weekly", "own"];

/** A schedule in a few words, in its time zone. */
export function says(schedule, zone) {
  const { kind, day, time } = read(schedule);
  return t(`series.at.${kind}`, { day: days().find(([one]) => one === String(day))[1], time, schedule, zone });
}

/** The fields; `read(values)` returns the request: all of a new series, and what changed of a present one. */
export function seriesFields(present, id) {
  const schedules = present ?? STANDARD;
  const said = MOMENTS.map((moment) => read(schedules[moment]));
  const kinds = new Set(said.map(({ kind }) => kind));
  // Schedules of different kinds, and those that the choice has not, are shown as cron.
  const kind = kinds.size === 1 && KINDS.includes(said[0].kind) ? said[0].kind : "own";
  const moments = MOMENTS.map((moment, at) => momentOf(moment, said[at], schedules[moment]));
  const which = field({ name: "repeats", label: t("series.repeats"), options: KINDS.map((one) => [one, t(`series.kind.${one}`)]), value: kind, hint: t("series.hint.repeats") });
  const select = which.querySelector("select");
  const show = () => moments.forEach((moment) => moment.show(select.value));
  select.addEventListener("change", show);
  show();
  const template = contestFields(present?.template, { times: false, id });
  const zone = zoneField(present?.time_zone, t("series.time_zone"), t("series.hint.time_zone"));
  const ahead = field({ name: "ahead", label: t("series.ahead"), type: "number", min: 1, max: 50, value: present?.ahead ?? 1, hint: t("series.hint.ahead") });
  const times = h("fieldset", {}, h("legend", {}, t("series.times")), h("div", { class: "fields" }, which, zone, ahead), h("div", { class: "fields" }, moments.map(({ elements }) => elements)));
  const [first, ...others] = template.elements;
  return {
    elements: [first, times, ...others],
    read: (values) => {
      const made = Object.fromEntries(moments.map((moment) => [moment.name, moment.cron(values)]));
      Object.assign(made, { time_zone: values.time_zone, ahead: Number(values.ahead) });
      if (!present) return { ...made, template: template.read(values) };
      const other = Object.fromEntries(Object.entries(made).filter(([name, value]) => value !== present[name]));
      const inTemplate = template.read(values);
      return { ...other, ...(Object.keys(inTemplate).length > 0 && { template: inTemplate }) };
    },
  };
}

/** When contests open, start or end: a day and a time, or cron. */
function momentOf(name, { day, time }, schedule) {
  const options = days().map(([one, text]) => h("option", { value: one, selected: one === String(day) }, text));
  const weekday = h("select", { name: `${name}_day`, "aria-label": t(`series.day.${name}`) }, options);
  const clock = field({ name: `${name}_time`, label: t(`series.time.${name}`), type: "time", value: time, hint: t(`series.hint.${name}`) });
  const own = field({ name: `${name}_cron`, label: t(`series.cron.${name}`), value: schedule, hint: t(`series.hint.${name}`) });
  beside(clock, weekday);
  return {
    name,
    elements: [clock, own],
    show: (kind) => {
      weekday.hidden = kind !== "weekly";
      clock.hidden = kind === "own";
      own.hidden = kind !== "own";
    },
    cron: (values) => {
      const kind = values.repeats;
      if (kind === "own") return values[`${name}_cron`];
      const chosen = { kind, day: values[`${name}_day`], time: values[`${name}_time`] };
      // A schedule that says the same in other words has not changed.
      const before = read(schedule);
      const same = before.kind === kind && before.time === chosen.time && (kind === "daily" || String(before.day) === chosen.day);
      return same ? schedule : cron(chosen);
    },
  };
}
