// Members sign in, open the main page, look at their transactions and pay each other: k6 run transfer.js
//
//   TALLY_URL   where tally answers (http://127.0.0.1:8420)
//   MEMBERS     members user0 .. user<MEMBERS-1>, password "password", PIN 1234, phone 010 and the number in 8 digits
//
// A request is counted as one iteration per call, so the rate is the rate of requests. Not here: making the members.
import http from 'k6/http';
import { check } from 'k6';

const url = __ENV.TALLY_URL || 'http://127.0.0.1:8420';
const members = Number(__ENV.MEMBERS || 1000);
const PIN = 1234; // as a number: zeros in front of it would be filled up

export const options = {
  scenarios: {
    transfers: {
      executor: 'ramping-arrival-rate',
      startRate: 0,
      timeUnit: '1s',
      preAllocatedVUs: 200,
      maxVUs: 2000,
      stages: [
        { target: 200, duration: '1m' },
        { target: 400, duration: '1m' },
        { target: 600, duration: '1m' },
        { target: 800, duration: '1m' },
        { target: 1000, duration: '1m' },
        { target: 1000, duration: '2m' },
        { target: 0, duration: '30s' },
      ],
    },
  },
  thresholds: {
    'http_req_duration{call:transfer}': ['p(95)<300'],
    http_req_failed: ['rate<0.01'],
  },
};

const json = { 'Content-Type': 'application/json' };
const phone = (number) => `010${String(number).padStart(8, '0')}`;
const any = () => Math.floor(Math.random() * members);
let own = null; // a virtual user signs in once and keeps its token

function signIn() {
  const number = any();
  const body = JSON.stringify({ loginId: `user${number}`, password: 'password' });
  const answer = http.post(`${url}/auth/signin`, body, { headers: json, tags: { call: 'signin' } });
  if (!check(answer, { 'signed in': (r) => r.status === 200 })) return null;
  return { number, token: answer.json('data.accessToken') };
}

function uuid() {
  return 'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replace(/x/g, () => Math.floor(Math.random() * 16).toString(16));
}

export default function () {
  own = own || signIn();
  if (own === null) return;
  const headers = { ...json, Authorization: `Bearer ${own.token}` };
  if (__ITER % 6 === 0) {
    for (const path of ['/v1/me', '/v1/me/wallet', '/v1/me/ranks', '/v1/me/transactions?limit=20']) {
      http.get(`${url}${path}`, { headers, tags: { call: 'page' } });
    }
  }
  let to = any();
  if (to === own.number) to = (to + 1) % members;
  const body = JSON.stringify({ phoneNumber: phone(to), amount: 100, password: PIN });
  const answer = http.post(`${url}/transfer/phone-num`, body, {
    headers: { ...headers, 'Idempotency-Key': uuid() },
    tags: { call: 'transfer' },
  });
  if (answer.status === 401) own = null; // the token has ended
  check(answer, { paid: (r) => r.status === 201 });
}
