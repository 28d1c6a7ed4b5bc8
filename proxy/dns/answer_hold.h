// Holds answers back until something else is done, as the responder knows it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace keelson::proxy::dns {

// Thread safe.
class AnswerHold {
 public:
  virtual ~AnswerHold() = default;
  // Whether an answer with addresses of `name` (wire form, lower case) is for Hold(); `v4`: the question is A, else AAAA.
  virtual bool Holds(std::string_view name, bool v4) = 0;
  // Calls `send` once with the answer, within the call or later on any thread.
  virtual void Hold(std::string answer, std::function<void(std::string_view)> send) = 0;
};

}  // namespace keelson::proxy::dns
