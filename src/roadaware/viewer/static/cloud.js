// Points and lines in WebGL 2, seen from a camera that goes around a target; metres, x ahead, y left, z up.

const POINTS = [
  "#version 300 es\nin vec3 at; in vec4 colour; uniform mat4 way; uniform float size; out vec4 shade;\nvoid main() { gl_Position = way * vec4(at, 1.0); gl_PointSize = clamp(size / gl_Position.w, 1.5, 9.0); shade = colour; }",
  "#version 300 es\nprecision mediump float; in vec4 shade; out vec4 seen;\nvoid main() { seen = shade; }",
];

export class Cloud {
  // Null where the browser has no WebGL 2.
  static over(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true });
    if (!gl) return null;
    try {
      return new Cloud(canvas, gl);
    } catch {
      return null;
    }
  }

  constructor(canvas, gl) {
    Object.assign(this, { canvas, gl });
    this.program = link(gl, POINTS);
    this.way = gl.getUniformLocation(this.program, "way");
    this.size = gl.getUniformLocation(this.program, "size");
    this.points = this.build();
    this.lines = this.build();
    gl.enable(gl.DEPTH_TEST);
  }

  build() {
    const { gl } = this;
    const found = { object: gl.createVertexArray(), at: gl.createBuffer(), colour: gl.createBuffer(), count: 0 };
    gl.bindVertexArray(found.object);
    for (const [name, size, kind, whole] of [["at", 3, gl.FLOAT, false], ["colour", 4, gl.UNSIGNED_BYTE, true]]) {
      const place = gl.getAttribLocation(this.program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, found[name]);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, size, kind, whole, 0, 0);
    }
    return found;
  }

  // What is drawn, "points" or "lines": (3n) metres and (4n) bytes of colour; lines by two ends each.
  fill(name, at, colour) {
    const { gl } = this;
    const held = this[name];
    gl.bindBuffer(gl.ARRAY_BUFFER, held.at);
    gl.bufferData(gl.ARRAY_BUFFER, at, gl.DYNAMIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, held.colour);
    gl.bufferData(gl.ARRAY_BUFFER, colour, gl.DYNAMIC_DRAW);
    held.count = at.length / 3;
  }

  draw(way, ratio) {
    const { gl, canvas } = this;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0.055, 0.071, 0.086, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.program);
    gl.uniformMatrix4fv(this.way, false, way);
    gl.uniform1f(this.size, 45 * ratio);
    for (const [held, kind] of [[this.points, gl.POINTS], [this.lines, gl.LINES]]) {
      if (!held.count) continue;
      gl.bindVertexArray(held.object);
      gl.drawArrays(kind, 0, held.count);
    }
  }
}

function link(gl, [vertex, fragment]) {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  return program;
}

// The matrix, column by column, that takes metres to the canvas: from an orbit {target, yaw, pitch, away}.
export function look({ target, yaw, pitch, away }, aspect) {
  const ahead = [Math.cos(pitch) * Math.cos(yaw), Math.cos(pitch) * Math.sin(yaw), -Math.sin(pitch)];
  const right = [Math.sin(yaw), -Math.cos(yaw), 0];
  const up = [right[1] * ahead[2] - right[2] * ahead[1], right[2] * ahead[0] - right[0] * ahead[2], right[0] * ahead[1] - right[1] * ahead[0]];
  const eye = target.map((value, k) => value - ahead[k] * away);
  const shift = (axis) => -(axis[0] * eye[0] + axis[1] * eye[1] + axis[2] * eye[2]);
  const [near, far, focal] = [0.2, 1500, 1.6];
  const [wide, deep, back] = [focal / aspect, -(far + near) / (far - near), (-2 * far * near) / (far - near)];
  const found = new Float32Array(16);
  for (let k = 0; k < 4; k += 1) {
    found[4 * k] = wide * (k < 3 ? right[k] : shift(right));
    found[4 * k + 1] = focal * (k < 3 ? up[k] : shift(up));
    found[4 * k + 2] = -deep * (k < 3 ? ahead[k] : shift(ahead)) + (k === 3 ? back : 0);
    found[4 * k + 3] = k < 3 ? ahead[k] : shift(ahead);
  }
  return found;
}

// Where a place is seen: x and y in pixels of the canvas and how far away; null behind the camera.
export function project(way, x, y, z, wide, high) {
  const w = way[3] * x + way[7] * y + way[11] * z + way[15];
  if (w < 0.2) return null;
  const across = (way[0] * x + way[4] * y + way[8] * z + way[12]) / w;
  const down = (way[1] * x + way[5] * y + way[9] * z + way[13]) / w;
  return [((across + 1) / 2) * wide, ((1 - down) / 2) * high, w];
}
