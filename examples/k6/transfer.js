// Members pay each other by phone number, at a rate that climbs to 1,000 a second: k6 run transfer.js
//
// Members are those of `tally seed wallets`. 2,000 of them sign in before the clock starts; then each arrival is a transfer.
// The same load without k6, measured from when each arrival was due, is `tally load transfers`.
//
//   TALLY_URL   where tally answers (http://127.0.0.1:8420)
//   MEMBERS     how many members there are (100000)
//   TOKENS      how many of them pay (2000)
//   SCALE       the rates, as a part of these (1)
//   STAGE       how long each step takes, in seconds (60)
import http from 'k6/http';
import exec from 'k6/execution';
import { check } from 'k6';

const number = (name, otherwise) => Number(__ENV[name] || otherwise);
const url = __ENV.TALLY_URL || 'http://127.0.0.1:8420';
const [members, tokens] = [number('MEMBERS', 100000), number('TOKENS', 2000)];
const [scale, stage] = [number('SCALE', 1), number('STAGE', 60)];
const step = (rate, lasts) => ({ target: Math.round(rate * scale), duration: `${lasts}s` });

export const options = {
  setupTimeout: '10m',
  scenarios: {
    transfers: {
      executor: 'ramping-arrival-rate',
      startRate: 0,
      timeUnit: '1s',
      preAllocatedVUs: 200,
      maxVUs: 2000,
      stages: [...[200, 400, 600, 800, 1000].map((rate) => step(rate, stage)), step(1000, 2 * stage), step(0, stage / 2)],
    },
  },
  thresholds: {
    'http_req_duration{call:transfer}': ['p(95)<300'],
    'http_req_failed{call:transfer}': ['rate<0.01'],
  },
  summaryTrendStats: ['avg', 'p(50)', 'p(95)', 'p(99)', 'p(99.9)', 'max'],
};

const json = { 'Content-Type': 'application/json' };
const padded = (value, digits) => String(value).padStart(digits, '0');

// A word that no other run has, so that its transfers are not taken for repeated ones.
const word = () => Math.random().toString(36).slice(2);

export function setup() {
  const signedIn = [];
  for (let member = 1; member <= tokens; member++) {
    const body = JSON.stringify({ loginId: `user${padded(member, 7)}`, password: 'tally-seed' });
    const answer = http.post(`${url}/auth/signin`, body, { headers: json, tags: { call: 'signin' } });
    if (answer.status !== 200) throw new Error(`user${padded(member, 7)} cannot sign in: ${answer.status} ${answer.body}`);
    signedIn.push({ member, token: answer.json('data.accessToken') });
  }
  return { run: word(), signedIn };
}

export default function ({ run, signedIn }) {
  const own = signedIn[Math.floor(Math.random() * signedIn.length)];
  const other = 1 + ((own.member + Math.floor(Math.random() * (members - 1))) % members);
  // The password is the wallet's PIN, as a number.
  const body = JSON.stringify({ phoneNumber: `010${padded(other, 8)}`, amount: 10, password: 1234 });
  const headers = {
    ...json,
    Authorization: `Bearer ${own.token}`,
    'Idempotency-Key': `${run}-${exec.scenario.iterationInTest}`,
  };
  const answer = http.post(`${url}/transfer/phone-num`, body, { headers, tags: { call: 'transfer' } });
  check(answer, { transferred: (r) => r.status === 201 });
}
