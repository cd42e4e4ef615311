"""A proxy that lets so many bytes of answers through and then hangs up for good: half_way.py PORT TARGET LIMIT."""

import socket
import sys
import threading

port, target, limit = map(int, sys.argv[1:])
left = [limit]
lock = threading.Lock()


def pump(source, sink, counted):
    try:
        while data := source.recv(4096):
            if counted:
                with lock:
                    data = data[: left[0]]
                    left[0] -= len(data)
                if not data:
                    break
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


listener = socket.create_server(("127.0.0.1", port))
while True:
    client, _ = listener.accept()
    if left[0] <= 0:
        client.close()
        continue
    server = socket.create_connection(("127.0.0.1", target))
    threading.Thread(target=pump, args=(client, server, False), daemon=True).start()
    threading.Thread(target=pump, args=(server, client, True), daemon=True).start()
