// Objects, typed arrays, promises, worker threads and compression.
const crypto = require('crypto');
const zlib = require('zlib');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const digest = (text) => crypto.createHash('md5').update(text).digest('hex');
function work(seed) {
  const map = new Map();
  for (let i = 0; i < 60000; i++) map.set(`key${(i * 7919 + seed) % 9973}`, { i, list: Array(i % 30).fill(seed) });
  const buffers = [];
  for (let i = 0; i < 400; i++) buffers.push(Buffer.alloc(i * 100, i % 256));
  const packed = zlib.gzipSync(Buffer.concat(buffers), { level: 6 });
  return digest(JSON.stringify([...map.entries()].slice(0, 3000))) + ' ' + digest(zlib.gunzipSync(packed));
}
if (isMainThread) {
  const jobs = [1, 2, 3, 4].map((seed) => new Promise((done, fail) => {
    const worker = new Worker(__filename, { workerData: seed });
    worker.on('message', done);
    worker.on('error', fail);
  }));
  Promise.all(jobs).then((results) => { results.forEach((line) => console.log(line)); console.log(work(0)); });
} else {
  parentPort.postMessage(work(workerData));
}
