// Where numbers come from: the server, or the recordings inside a lesson.

import { Recording } from "./recording.js";
import { server } from "./server.js";
import { $ } from "./state.js";

export const source = $("lesson") ? new Recording($("lesson").textContent) : server;
