// A server that checks passwords, and a client that logs in and then stops it:
// logins.mjs pbkdf2|pbkdf2Sync SOCKET, logins.mjs client SOCKET LOGINS

import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import { promisify } from 'node:util';

const [mode, socketPath, logins] = process.argv.slice(2);
const ROUNDS = 60_000;
const CONNECTIONS = 8;

const hash = {
  pbkdf2: promisify(crypto.pbkdf2),
  pbkdf2Sync: async (...options) => crypto.pbkdf2Sync(...options),
};

function serve() {
  fs.rmSync(socketPath, { force: true });
  const server = http.createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    if (url.pathname === '/stop') {
      response.end();
      server.close();
      server.closeAllConnections();
      return;
    }
    const key = await hash[mode](url.searchParams.get('password'), 'salt', ROUNDS, 32, 'sha512');
    response.end(JSON.stringify({ key: key.toString('hex') }));
  });
  server.listen(socketPath);
}

function get(path, agent) {
  return new Promise((resolve, reject) => {
    const request = http.get({ socketPath, path, agent }, (response) => {
      let text = '';
      response.on('data', (data) => (text += data));
      response.on('end', () => resolve(text));
    });
    request.on('error', reject);
  });
}

async function logIn() {
  while (!fs.existsSync(socketPath)) await new Promise((resolve) => setTimeout(resolve, 20));
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const answers = Array.from({ length: Number(logins) }, (_, i) => get(`/login?password=p${i}`, agent));
  const keys = (await Promise.all(answers)).map((text) => JSON.parse(text).key);
  console.log(new Set(keys).size);
  agent.destroy();
  await get('/stop').catch(() => {});
}

if (mode === 'client') await logIn();
else serve();
