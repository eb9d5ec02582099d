#!/usr/bin/env python3
"""Values of mails' headers and of front matter, held against Python's email module and a model.

    heads_oracle.py GPUIR FOLDER N [SEED]

Writes N messages to an mbox and N pages, of which a third is mutated, indexes them, and compares what --json shows.
Of mutated ones only what Python reads without a defect is compared: the others must not end the command."""
import datetime, email, email.header, email.policy, email.utils, json, os, random, subprocess, sys

gpuir, folder, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
WORDS = ['tea', 'Käse', 'green', '茶', 'a,b', 'x "y"', "it's", 're:', '[list]', 'co#ffee', '100%', 'ñandú', '😀', 'a: b']


def words():
    return ' '.join(rng.choice(WORDS) for _ in range(rng.randint(1, 8)))


def address():
    return '%s@%s.example' % (rng.choice(['ann', 'bob', 'c.d', 'e+f']), rng.choice(['a', 'b-c', 'd1']))


def moment():
    zone = datetime.timezone(datetime.timedelta(minutes=rng.choice([0, 60, -300, 330, -570])))
    return datetime.datetime(rng.randint(1970, 2035), rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23),
                             rng.randint(0, 59), rng.randint(0, 59), tzinfo=zone)


def utc(t):
    return t.astimezone(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')


def header(name, value, sign):
    """A field folded at blanks, which is how most programs write it."""
    pieces, line = value.split(sign + ' '), name + ':'
    lines = []
    for i, piece in enumerate(pieces):
        piece = ' ' + piece + (sign if i + 1 < len(pieces) else '')
        if len(line) + len(piece) > 60 and i and rng.random() < 0.8:
            lines.append(line)
            line = ''
        line += piece
    return '\n'.join(lines + [line]) + '\n'


def mail():
    """EmailMessage loses quotes of names when it folds them, so the header is written here."""
    sender, to, subject, at = address(), [address() for _ in range(rng.randint(1, 4))], words(), moment()
    who = [email.utils.formataddr((words(), a)) if rng.random() < 0.6 else a for a in [sender] + to]
    text = header('From', who[0], ',') + header(rng.choice(['To', 'to', 'TO']), ', '.join(who[1:]), ',')
    encoded = email.header.Header(subject, 'utf-8', maxlinelen=rng.choice([40, 76]), header_name='Subject').encode()
    text += 'Subject: ' + encoded + '\n' if not subject.isascii() else header('Subject', subject, '')
    text += 'Date: ' + email.utils.format_datetime(at) + '\n\ngreen tea\n'
    parsed = email.message_from_string(text, policy=email.policy.default)
    assert [a.addr_spec for a in parsed['To'].addresses] == to and parsed['Subject'] == subject
    return text.encode(), {'from': [sender], 'to': list(dict.fromkeys(to)), 'subject': [subject], 'date': utc(at)}


def scalar(text):
    if rng.random() < 0.5 or text[0] in '"\'[{&*!|>%@`#-' or ': ' in text or ' #' in text or text in ('null', '~'):
        return '"%s"' % text.replace('\\', '\\\\').replace('"', '\\"') if rng.random() < 0.5 or "'" in text else "'%s'" % text
    return text


def page():
    title, tags, at = words(), list(dict.fromkeys(words() for _ in range(rng.randint(0, 4)))), moment()
    lines = ['---', 'title: ' + scalar(title)]
    if rng.random() < 0.5:
        lines.append('tags: [%s]' % ', '.join('"%s"' % t.replace('"', '\\"') for t in tags))
    else:
        lines += ['tags:'] + ['%s- %s' % (rng.choice(['', '  ']), scalar(t)) for t in tags]
    lines += ['date: ' + at.isoformat(), '---', 'green page']
    want = {'title': [title], 'date': utc(at)}
    if tags:
        want['tags'] = tags
    return '\n'.join(lines).encode() + b'\n', want


def mutated(data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(data))
        what = rng.random()
        if what < 0.4:
            data[at] = rng.choice(b'\n"\'()<>:,;[]=?-# \\\x00\xff')
        elif what < 0.7:
            del data[at:at + rng.randint(1, 9)]
        else:
            data[at:at] = bytes(rng.choice(b'\n"()<>:,[]=?-\\') for _ in range(rng.randint(1, 4)))
        if not data:
            data = bytearray(b'x')
    return bytes(data)


os.makedirs(folder)
wants = {}
for i in range(2 * n):
    data, want = mail() if i % 2 else page()
    spoilt = rng.random() < 1 / 3
    name = '%06d.%s' % (i, 'eml' if i % 2 else 'md')
    with open(os.path.join(folder, name), 'wb') as f:
        f.write(mutated(data) if spoilt else data)
    if not spoilt:
        wants[name] = want
fields = [a for f in ('from=key', 'to=key', 'subject=key', 'title=key', 'tags=key', 'date=date') for a in ('--field', f)]
index = folder + '.gpuir'
ran = subprocess.run([gpuir, 'index', '-q', '--fields', 'none', *fields, folder, '-o', index], stderr=subprocess.PIPE)
assert ran.returncode in (0, 3), ran
out = subprocess.run([gpuir, 'query', '--json', '-k', '1000000', '-w', 'date=.. | -date=..', index], stdout=subprocess.PIPE,
                     check=True).stdout
wrong = 0
seen = {os.path.basename(h['name']): h['values'] for h in json.loads(out)['hits']}
for name, want in wants.items():
    if seen.get(name) != want:
        wrong += 1
        if wrong < 6:
            print(name, want, seen.get(name), sep='\n  ')
print('%d documents, %d compared, %d wrong' % (2 * n, len(wants), wrong))
sys.exit(wrong != 0)
