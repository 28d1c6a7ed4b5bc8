// Questions and answers over TCP, UDP and SCTP between network namespaces: who answers, and as whom it sees
// the client.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lib/base/fd.h"
#include "lib/base/ip.h"
#include "lib/linux/netns.h"

namespace keelson::netns {

// Whether there can be questions of a protocol. Of SCTP (sctp_wire.h) only while the kernel's own is not
// loaded.
bool Speaks(uint8_t protocol);

// Tells whoever connects or sends "NAME CLIENT-IP\n", on `port` of every address in `netns`, over TCP, UDP
// and SCTP. TCP connections stay open and echo what comes.
class Responder {
 public:
  Responder(std::string name, const linux::NetNs& netns, uint16_t port);
  ~Responder();

 private:
  void Serve(std::stop_token stop);
  void Watch(const UniqueFd& fd);
  void Accept();
  void Echo(int fd);
  void AnswerDatagram(int fd) const;
  const std::string name_;
  const uint16_t port_;
  UniqueFd epoll_, datagrams_, listener_;
  std::vector<UniqueFd> raw_;
  std::unordered_map<int, UniqueFd> peers_;
  std::jthread thread_;
};

struct Answer {
  std::string server, seen_as;
};

struct Question {
  uint8_t protocol = 6;
  std::optional<IpAddress> source;  // else what the routes say
  IpAddress to;
  uint16_t port = 0;
  std::chrono::milliseconds limit{2000};
};

// Errors carry errno: ECONNREFUSED, ETIMEDOUT after the limit.
Result<Answer> Ask(const linux::NetNs& from, const Question& question);

// A TCP connection that stays.
class Conversation {
 public:
  static Result<Conversation> Open(const linux::NetNs& from, const Question& question);
  const Answer& answer() const { return answer_; }
  bool Echoes() { return Says() && Hears(); }  // still alive in both directions
  bool Says();
  bool Hears();   // the echo of that
  void Reset();   // ends at once, for both sides and all that track it
  void Vanish();  // without a word, so that what tracks it takes it for open

 private:
  UniqueFd fd_;
  Answer answer_;
};

}  // namespace keelson::netns
